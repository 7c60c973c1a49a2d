import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "./child.ts";
import { SUITES } from "./mutants.ts";
import type { Mutant, Suite } from "./mutants.ts";
import type { Producer } from "./producer.ts";
import type { Finding } from "./rows.ts";
import { runTests } from "./vitest-report.ts";
import type { RanTest } from "./vitest-report.ts";

const MODEL = "test/wallet/ledger-model.pure.test.ts";
const WHOLE = "never overspend, never charge twice";
const GUARD = "the model objects when a guard is taken away:";
const CONFIG = `export default { test: { include: ["*/test/**/*.pure.test.ts"], testTimeout: 60_000 } };`;
/** Ten times what they take: a mutant that never ends ends the measurement. */
const TIMEOUT_MS = 300_000;

/** A copy of the tree in which one guard is gone; `intact` is the copy where none is. */
type Copy = { readonly name: string; readonly suite: Suite; readonly mutant: Mutant | null };

/** The source with the mutant in it; throws unless its text stands there exactly once. */
export function mutated(source: string, { file, text, mutated: other, guard }: Mutant): string {
  const parts = source.split(text);
  if (parts.length !== 2) {
    throw new Error(`"${guard}": its text stands ${parts.length - 1} times in ${file}, not once`);
  }
  return parts.join(other);
}

/** Row 1: the model's own runs, its rules without a guard, and the source without one. */
export function modelFinding(
  model: readonly RanTest[],
  copies: { readonly all: number; readonly survivors: readonly string[] },
): Finding {
  const whole = model.find(({ title }) => title.startsWith(WHOLE));
  const runs = Number(/ in (\d+) runs/.exec(whole?.title ?? "")?.[1] ?? 0);
  const rules = model.filter(({ fullName }) => fullName.startsWith(GUARD));
  const found = rules.filter((one) => one.hasPassed).length;
  const values = {
    runs: whole?.hasPassed === true ? runs : 0,
    rules: rules.length,
    rulesFound: found,
    mutants: copies.all,
    mutantsFound: copies.all - copies.survivors.length,
  };
  const survived = copies.survivors.length === 0 ? "" : `; missed: ${copies.survivors.join(", ")}`;
  return {
    row: 1,
    measured:
      `${values.runs.toLocaleString("en-US")} runs; ${found} of ${rules.length} rules replaced, ` +
      `${values.mutantsFound} of ${values.mutants} lines of source changed${survived}`,
    isMet:
      values.runs > 0 &&
      rules.length > 0 &&
      found === rules.length &&
      copies.all > 0 &&
      copies.survivors.length === 0,
    values,
  };
}

/** Which mutants their suite did not find. Throws when a suite fails without any, or did not run. */
export function survivorsOf(copies: readonly Copy[], tests: readonly RanTest[]): readonly string[] {
  const hasFailed = ({ name, suite }: Copy): boolean => {
    const its = tests.filter(
      ({ file, title }) => file.includes(`/${name}/`) && title.startsWith(suite.title),
    );
    if (its.length === 0) throw new Error(`${suite.test} did not run in ${name}`); // no finding
    return its.some((one) => !one.hasPassed);
  };
  for (const copy of copies) {
    if (copy.mutant === null && hasFailed(copy)) {
      throw new Error(`${copy.suite.test} fails as it is`);
    }
  }
  const missed = copies.filter((copy) => copy.mutant !== null && !hasFailed(copy));
  return missed.map(({ mutant }) => mutant?.guard ?? "");
}

export const MODEL_AND_MUTANTS: Producer = {
  rows: [1],
  what: "the ledger's model, and the same without one guard each",
  seconds: 60,
  produce: async ({ scratch, say }) => {
    const model = await runTests(scratch, [MODEL]);
    const copies = SUITES.flatMap(copiesOf);
    const root = path.join(scratch, "mutants");
    mkdirSync(root);
    symlinkSync(path.join(ROOT, "node_modules"), path.join(root, "node_modules"));
    writeFileSync(path.join(root, "vitest.config.mjs"), CONFIG);
    writeFileSync(path.join(root, "package.json"), `{"type":"module"}`);
    for (const copy of copies) copyTree(path.join(root, copy.name), copy);
    const all = copies.filter(({ mutant }) => mutant !== null).length;
    say(`${all} changed copies of the source`);
    const tests = await runTests(scratch, [], { directory: root, timeoutMs: TIMEOUT_MS });
    return [modelFinding(model, { all, survivors: survivorsOf(copies, tests) })];
  },
};

function copiesOf(suite: Suite, at: number): Copy[] {
  const copies: Copy[] = [{ name: `intact-${at}`, suite, mutant: null }];
  for (const [i, mutant] of suite.mutants.entries()) {
    copies.push({ name: `mutant-${at}-${i}`, suite, mutant });
  }
  return copies;
}

/** The source and the one test, in a place of their own: the checkout itself is never changed. */
function copyTree(to: string, { suite, mutant }: Copy): void {
  cpSync(path.join(ROOT, "src"), path.join(to, "src"), { recursive: true });
  const folder = path.dirname(suite.test);
  const isNeeded = (from: string): boolean =>
    !from.endsWith(".test.ts") || from === path.join(ROOT, suite.test);
  cpSync(path.join(ROOT, folder), path.join(to, folder), { recursive: true, filter: isNeeded });
  cpSync(path.join(ROOT, "test/effort.ts"), path.join(to, "test/effort.ts"));
  if (mutant === null) return;
  const file = path.join(to, mutant.file);
  writeFileSync(file, mutated(readFileSync(file, "utf8"), mutant));
}
