import { fileOf } from "../../scripts/site/audiences.ts";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ensureDemo } from "../../scripts/dev-demo.ts";
import type { Demo } from "../../scripts/dev-demo.ts";
import { byRegion } from "../../scripts/region-names.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { examplesOf, pagePaths, readPage } from "../documents/pages.ts";
import { runPage } from "../documents/run-page.ts";
import type { Ran } from "../documents/run-page.ts";
import { hasShape } from "../documents/shape.ts";
import { serveMeters } from "../fakes/stripe-meters.ts";
import { devPorts } from "./support/dev-ports.ts";
import { startProgram } from "./support/program.ts";
import type { Program } from "./support/program.ts";

const PAGE_TIMEOUT_MS = 180_000; // a page can call npm a dozen times, and the machine can be slow
const pages = pagePaths().filter((page) => examplesOf(readPage(page)).length > 0);
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-documents-"));
let places: Parameters<typeof ensureDemo>[0];
let adminToken: string;
let dev: Program;
let stripe: Awaited<ReturnType<typeof serveMeters>>;

beforeAll(async () => {
  const { ports, variables } = await devPorts();
  stripe = await serveMeters();
  process.env["STRIPE"] = stripe.url;
  dev = startProgram(["scripts/dev.ts"], {
    ...variables,
    DEV_DIR: directory,
    // Without this, a developer's .dev.vars could make the test pay a provider.
    SANDBOX: "on",
    ALIASES: JSON.stringify({ smart: "sandbox/echo", "embeddings/cheapest": "sandbox/embed" }),
  });
  if (!(await dev.says("Stop with Ctrl-C"))) throw new Error(dev.output());
  adminToken = demoOf(directory).admin_token;
  places = byRegion((name) => ({ name, url: `http://127.0.0.1:${ports[name]}/` }));
}, PAGE_TIMEOUT_MS);
/** Files that the pages' commands write into the current folder. */
const WRITTEN = ["audio.wav", "focus.csv"];

afterAll(async () => {
  stripe.close();
  dev.child.kill("SIGTERM");
  await dev.ended;
  removeDirectory(directory);
  for (const file of WRITTEN) {
    rmSync(path.join(import.meta.dirname, "../..", file), { force: true });
  }
});

/**
 * Reports whether an example printed the page's output. An example without output must print
 * nothing and exit with 0.
 */
function isAsDocumented({ example, printed, code }: Ran): boolean {
  if (example.answer === null) return code === 0 && printed === "";
  return hasShape(printed, example.answer);
}

function demoOf(folder: string): Demo {
  return JSON.parse(readFileSync(path.join(folder, "demo.json"), "utf8")) as Demo;
}

/** Returns the EU region's response to a browser without a key. */
async function get(
  at: string,
): Promise<{ status: number; type: string; text: string; csp: string }> {
  const response = await fetch(new URL(at, places.eu.url));
  const { status, headers } = response;
  const type = headers.get("content-type") ?? "";
  const csp = headers.get("content-security-policy") ?? "";
  return { status, type, text: await response.text(), csp };
}

it("the documentation site serves every page below /docs as HTML and Markdown, without broken links", async () => {
  const served = new Set(["/docs/"]);
  const broken: string[] = [];
  for (const at of served) {
    const { status, type, text, csp } = await get(at);
    if (status !== 200) broken.push(`${at}: ${status}`);
    if (!type.startsWith("text/html") || at.startsWith("/console")) continue;
    expect(csp).toContain("script-src 'self'");
    expect(text).not.toMatch(/<script(?! src=)|<style| on\w+="|"https?:\/\/[^"]*\.(?:js|css|png)"/);
    const anchors = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const [, to = ""] of text.matchAll(/ (?:href|src|data-index)="([^"]+)"/g)) {
      if (to.startsWith("#") && !anchors.has(to.slice(1))) broken.push(`${at}: ${to}`);
      if (to.startsWith("/")) served.add(to.split("#")[0] ?? to);
    }
  }
  expect(broken).toEqual([]);
  const written = pagePaths().filter((page) => page.startsWith("docs/"));
  const twins = written.map((page) => `/${fileOf(page.replace(/^docs\/|\.md$/g, ""))}.md`);
  expect(twins.filter((twin) => !served.has(twin))).toEqual([]);
  expect((await get("/docs/operate.md")).text).toBe(readPage("docs/operate.md"));
  expect((await get("/docs/errors")).text).toContain('id="insufficient_balance"');
});

it("the documentation site sets strict-transport-security, even without the Worker", async () => {
  for (const at of ["/console/", "/docs/", "/docs/start", "/openapi.json", "/llms.txt"]) {
    const { headers } = await fetch(new URL(at, places.eu.url));
    expect([at, headers.get("strict-transport-security")]).toEqual([at, "max-age=31536000"]);
  }
});

it("the Worker serves /openapi.json and /llms.txt without affecting the API's paths", async () => {
  const { openapi, paths } = JSON.parse((await get("/openapi.json")).text) as {
    openapi: string;
    paths: object;
  };
  expect([openapi, Object.keys(paths)]).toEqual(["3.1.0", expect.arrayContaining(["/v1/keys"])]);
  expect((await get("/docs/use/api")).text).toContain("POST /v1/chat/completions");
  expect((await get("/llms.txt")).text).toContain(`/${fileOf("start")}.md`);
  expect((await get("/v1/models")).status).toBe(401);
  for (const at of ["/docs/nothing", "/v1/nothing", "/nothing"]) {
    expect((await get(at)).type, at).toBe("application/json");
  }
});

it("the Worker returns an HTML page to browsers at / and at unknown addresses, and JSON to programs", async () => {
  const accept = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";
  const fetchPage = async (at: string) =>
    fetch(new URL(at, places.eu.url), { headers: { accept } });
  for (const [at, status, words] of [
    ["/", 200, "a model gateway"],
    ["/no-such", 404, "Page not found"],
    ["/docs/nothing", 404, "Page not found"],
  ] as const) {
    const response = await fetchPage(at);
    const text = await response.text();
    expect([at, response.status, response.headers.get("content-type")]).toEqual([
      at,
      status,
      "text/html; charset=utf-8",
    ]);
    expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
    for (const to of [words, "/console/", "/docs/use/quickstart"]) expect(text).toContain(to);
  }
  for (const at of ["/v1/nothing", "/admin/v1/nothing", "/console/api/nothing"]) {
    expect((await fetchPage(at)).headers.get("content-type"), at).toContain("application/json");
  }
  expect(await (await fetch(new URL("/", places.eu.url))).json()).toHaveProperty("error");
});

it("the documentation site redirects old addresses of pages", async () => {
  for (const [old, now] of [
    ["/docs/errors", "/docs/use/errors"],
    ["/docs/internals/decisions/", "/docs/develop/decisions/"],
    ["/docs/figures", "/docs/run/figures"],
  ]) {
    const response = await fetch(new URL(old ?? "", places.eu.url));
    expect([response.status, new URL(response.url).pathname]).toEqual([200, now]);
  }
});

it.each(pages)(
  "the output of each command on the page %s matches the actual response",
  async (page) => {
    const own = path.join(directory, page.replaceAll("/", "-"));
    mkdirSync(own);
    await ensureDemo(places, adminToken, own); // organizations of its own, as after npm start
    expect((await runPage(page, own)).filter((ran) => !isAsDocumented(ran))).toEqual([]);
  },
  PAGE_TIMEOUT_MS,
);
