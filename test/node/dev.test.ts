import { mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Demo, DemoRegion } from "../../scripts/dev-demo.ts";
import { enterLocally } from "../../scripts/dev-issuer.ts";
import { localSecrets } from "../../scripts/dev-settings.ts";
import { ACCOUNTS } from "../fakes/local-issuer.ts";
import { isPortInUse } from "../../scripts/ports.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { childPids } from "../../scripts/workerd.ts";
import { devPorts } from "./support/dev-ports.ts";
import { startProgram } from "./support/program.ts";
import type { Program } from "./support/program.ts";

const directory = mkdtempSync(path.join(tmpdir(), "turnpike-dev-"));
let variables: Record<string, string>;
let dev: Program;

async function start(): Promise<Demo> {
  dev = startProgram(["scripts/dev.ts"], variables);
  expect(await dev.says("Stop with Ctrl-C"), dev.output()).toBe(true);
  return JSON.parse(readFileSync(path.join(directory, "demo.json"), "utf8")) as Demo;
}

const balance = async ({ base_url, regional_key }: DemoRegion): Promise<number> => {
  const headers = { authorization: `Bearer ${regional_key}` };
  const answer = await fetch(`${base_url}/balance`, { headers });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { credits_micro: number }).credits_micro;
};

function isRunning(pid: number | undefined): boolean {
  try {
    return process.kill(pid ?? 0, 0);
  } catch {
    return false;
  }
}

beforeAll(async () => {
  variables = {
    ...(await devPorts()).variables,
    DEV_DIR: directory,
    // Without this, a developer's .dev.vars could make the test pay a provider.
    SANDBOX: "on",
    ALIASES: JSON.stringify({ smart: "sandbox/echo" }),
  };
});
afterAll(async () => {
  dev.child.kill("SIGTERM");
  await dev.ended;
  removeDirectory(directory);
});

let demo: Demo;
/** The balances after the paid requests. */
let balancesAfter: readonly number[];
const balances = () => Promise.all([balance(demo.eu), balance(demo.us)]);

it("npm start serves completions in both regions", async () => {
  demo = await start();
  for (const region of [demo.eu, demo.us]) {
    expect(dev.output()).toContain(region.regional_key);
    const client = new OpenAI({ baseURL: region.base_url, apiKey: region.regional_key });
    const before = await balance(region);
    expect(before).toBe(10_000_000);
    const { data, response } = await client.chat.completions
      .create({ model: "smart", messages: [{ role: "user", content: "Hello from a test" }] })
      .withResponse();
    expect(data.choices[0]?.message.content).toBeTruthy();
    const cost = Number(response.headers.get("x-cost-micro"));
    expect(cost).toBeGreaterThan(0);
    expect(await balance(region)).toBe(before - cost);
  }
  balancesAfter = await balances();
});

it("npm start leaves no process after kill -9 of the regions' process", async () => {
  const [leader] = childPids(dev.child.pid);
  const running = childPids(leader);
  expect(running.length).toBeGreaterThanOrEqual(2); // one workerd for each region
  process.kill(leader ?? 0, "SIGKILL");
  await expect.poll(() => [leader, ...running].filter(isRunning)).toEqual([]);
});

it("npm start leaves no process after kill -9 while the regions start", async () => {
  dev = startProgram(["scripts/dev.ts"], variables);
  expect(await dev.says("starting workerd"), dev.output()).toBe(true);
  const [leader] = childPids(dev.child.pid);
  dev.child.kill("SIGKILL");
  await expect.poll(() => isRunning(leader)).toBe(false);
});

it("npm start keeps balance and keys after both kills", async () => {
  expect(await start()).toEqual(demo);
  expect(await balances()).toEqual(balancesAfter);
});

it("npm start prints a login link that creates an account", async () => {
  const printed = /log in as a person: (\S+) \(Continue with this machine, as (\w+)\)/;
  const [, url = "", name] = printed.exec(dev.output()) ?? [];
  const account = ACCOUNTS.find((one) => one.name === name);
  if (account === undefined) throw new Error("no login was printed");
  expect(await enterLocally(url, account, "log_in")).toBe("/console/#/");
});

it("npm start frees its ports at SIGTERM", async () => {
  dev.child.kill("SIGTERM");
  expect(await dev.ended).toBe(0);
  const ports = Object.values(variables).slice(0, 2).map(Number);
  expect(await Promise.all(ports.map(isPortInUse))).toEqual([false, false]);
});

it("npm start makes the demo's secrets readable only by their owner", () => {
  for (const file of ["demo.json", "secrets.json"]) {
    expect(statSync(path.join(directory, file)).mode & 0o777).toBe(0o600);
  }
});

it("npm start adds missing secrets to an older state folder, and keeps the existing secrets", () => {
  const older = path.join(directory, "older");
  mkdirSync(older);
  const kept = { KEY_SECRETS: `a:${"k".repeat(64)}`, ADMIN_TOKEN: "t".repeat(64) };
  writeFileSync(path.join(older, "secrets.json"), JSON.stringify(kept), { mode: 0o600 });
  const completed = localSecrets(older);
  expect(completed).toMatchObject(kept);
  expect(completed.LINK_SECRET).toMatch(/^\w{64}$/);
  expect(localSecrets(older)).toEqual(completed);
});
