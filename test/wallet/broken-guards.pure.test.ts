import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { build } from "esbuild";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IS_LONG } from "../effort.ts";
import { recordMeasured } from "../measured.ts";
import { MONEY, RATE } from "./broken-guards.ts";
import type { BrokenGuard } from "./broken-guards.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const SUITES = {
  "test/wallet/ledger-model.pure.test.ts": MONEY,
  "test/keys/rate-window.pure.test.ts": RATE,
};
type Run = (require: (name: string) => unknown) => void;

/** Returns the source without the guard. Throws unless its text occurs exactly once. */
function without({ file, text, other, guard }: BrokenGuard): string {
  const parts = readFileSync(path.join(ROOT, file), "utf8").split(text);
  if (parts.length === 2) return parts.join(other);
  throw new Error(`"${guard}": its text stands ${parts.length - 1} times in ${file}, not once`);
}

/**
 * Bundles a test file and our modules with one guard removed, as a function of the external
 * modules.
 */
async function bundled(suite: string, broken: BrokenGuard | null): Promise<Run> {
  const { outputFiles } = await build({
    entryPoints: [path.join(ROOT, suite)],
    bundle: true,
    write: false,
    format: "cjs",
    platform: "node",
    packages: "external",
    define: { "import.meta.env": JSON.stringify({ TURNPIKE_LONG: IS_LONG ? "1" : "" }) },
    plugins: [
      {
        name: "broken-guard",
        setup: (bundling) => {
          if (broken === null) return;
          const filter = new RegExp(`/${broken.file.replaceAll(/[.]/g, "\\.")}$`);
          bundling.onLoad({ filter }, () => ({ contents: without(broken), loader: "ts" }));
        },
      },
    ],
  });
  // oxlint-disable-next-line typescript/no-implied-eval -- a suite of our own, with one text of it replaced
  return new Function("require", outputFiles[0]?.text ?? "") as Run;
}

/** Runs a suite's tests in sequence. Returns the first failure, or "". */
async function failureOf(suite: string, broken: BrokenGuard | null): Promise<string> {
  const run = await bundled(suite, broken);
  const tests: (() => void)[] = [];
  const ours = {
    expect,
    it: (_name: string, test: () => void) => tests.push(test),
    TestRunner: { getCurrentTest: () => undefined },
  };
  const load = createRequire(import.meta.url);
  const known: Readonly<Record<string, unknown>> = { vitest: ours, "fast-check": fc };
  run((name) => known[name] ?? load(name));
  expect(tests.length).toBeGreaterThan(0);
  for (const test of tests) {
    try {
      test();
    } catch (error) {
      return `${String(error)} ${error instanceof Error ? String(error.cause) : ""}`;
    }
  }
  return "";
}

// Stops at the first failure without shrinking.
beforeAll(() => fc.configureGlobal({ endOnFailure: true }));
afterAll(() => fc.resetConfigureGlobal());

describe.each(Object.entries(SUITES))("the property test of %s", (suite, guards) => {
  it.runIf(IS_LONG)("passes with unchanged source code", async () => {
    expect(await failureOf(suite, null)).toBe("");
  });

  it.each(guards.filter(({ isRare }) => isRare !== true || IS_LONG))(
    "fails if the source code breaks this rule: $guard",
    async (broken) => {
      const failure = await failureOf(suite, broken);
      expect(failure).toMatch(broken.breaks);
      recordMeasured({ guards: 1 });
      // a program that crashes proves nothing
      expect(failure).not.toMatch(/(?:Type|Reference)Error/);
    },
  );
});

it("the test of broken rules fails unless each line to change occurs exactly once in the source code", () => {
  const [one] = RATE;
  const other = { ...one, text: "WINDOW_MS" } as BrokenGuard;
  expect(() => without(other)).toThrow('"requests never exceed the rate limit": its text stands');
  expect(() => without({ ...other, text: "nowhere at all" })).toThrow("stands 0 times");
});
