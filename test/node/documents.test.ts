import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ensureDemo } from "../../scripts/dev-demo.ts";
import type { Demo } from "../../scripts/dev-demo.ts";
import { freePort } from "../../scripts/ports.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { examplesOf, pagePaths, readPage } from "../documents/pages.ts";
import { runPage } from "../documents/run-page.ts";
import type { Ran } from "../documents/run-page.ts";
import { hasShape } from "../documents/shape.ts";
import { startProgram } from "./support/program.ts";
import type { Program } from "./support/program.ts";

const PAGE_TIMEOUT_MS = 180_000; // a page may call npm a dozen times, and the machine may be busy
const pages = pagePaths().filter((page) => examplesOf(readPage(page)).length > 0);
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-documents-"));
let places: Parameters<typeof ensureDemo>[0];
let adminToken: string;
let dev: Program;

beforeAll(async () => {
  const [eu, us] = [await freePort(), await freePort()];
  dev = startProgram(["scripts/dev.ts"], {
    EU_PORT: String(eu),
    US_PORT: String(us),
    DEV_DIR: directory,
    // A developer's own .dev.vars and provider keys must not make this test call, or pay, anybody.
    SANDBOX: "on",
    ALIASES: JSON.stringify({ smart: "sandbox/echo", "embeddings/cheapest": "sandbox/embed" }),
  });
  if (!(await dev.says("Stop with Ctrl-C"))) throw new Error(dev.output());
  adminToken = demoOf(directory).admin_token;
  places = {
    eu: { name: "eu", url: `http://127.0.0.1:${eu}/` },
    us: { name: "us", url: `http://127.0.0.1:${us}/` },
  };
}, PAGE_TIMEOUT_MS);
afterAll(async () => {
  dev.child.kill("SIGTERM");
  await dev.ended;
  removeDirectory(directory);
});

/** An example printed what its page shows; one without an answer printed nothing and ended with 0. */
function isAsTold({ example, printed, code }: Ran): boolean {
  if (example.answer === null) return code === 0 && printed === "";
  return hasShape(printed, example.answer);
}

function demoOf(folder: string): Demo {
  return JSON.parse(readFileSync(path.join(folder, "demo.json"), "utf8")) as Demo;
}

it.each(pages)(
  "what %s says to run answers as it says",
  async (page) => {
    const own = path.join(directory, page.replaceAll("/", "-"));
    mkdirSync(own);
    await ensureDemo(places, adminToken, own); // organisations of its own, as after npm start
    expect((await runPage(page, own)).filter((ran) => !isAsTold(ran))).toEqual([]);
  },
  PAGE_TIMEOUT_MS,
);
