import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { blocksOf, readPage } from "../documents/pages.ts";
import { hasShape } from "../documents/shape.ts";
import { gateway } from "./gateway.ts";

/** The SDK for Python that the documents' blocks are tried with. */
const OPENAI = "openai==3.54.0";
const NEEDS_IT = /^sh no-run: it needs pip install openai\b/;
const INSTALL_MS = 300_000;

const at = gateway();
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-python-"));
const run = promisify(execFile);
const examples = ["docs/start.md", "docs/clients.md"].flatMap((page) =>
  blocksOf(readPage(page)).flatMap((block, i, all) =>
    NEEDS_IT.test(block.info)
      ? [{ at: `${page}:${block.line}`, text: block.text, answer: all[i + 1]?.text ?? "" }]
      : [],
  ),
);

beforeAll(async () => {
  if (!hasPython()) return;
  await run("python3", ["-m", "venv", directory]);
  await run(path.join(directory, "bin/pip"), ["install", "--quiet", OPENAI]);
}, INSTALL_MS);
afterAll(() => removeDirectory(directory));

it("the documents have blocks in Python", () => {
  expect(examples.length).toBeGreaterThanOrEqual(3);
});

it.runIf(hasPython()).each(examples)(
  "the block in Python at $at answers as it says",
  async ({ text, answer }) => {
    const { stdout } = await run("bash", ["-c", text], {
      env: {
        ...process.env,
        PATH: `${path.join(directory, "bin")}:${process.env["PATH"] ?? ""}`,
        URL: at.baseUrl,
        KEY: at.key,
      },
    });
    expect(hasShape(stdout, answer), stdout).toBe(true);
  },
);

function hasPython(): boolean {
  try {
    execFileSync("python3", ["-c", "import venv, ensurepip"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
