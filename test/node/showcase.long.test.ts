import { mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readDemo } from "../../scripts/dev-demo.ts";
import { readShowcase } from "../../scripts/dev-showcase.ts";
import type { Showcase } from "../../scripts/dev-showcase.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { devPorts } from "./support/dev-ports.ts";
import { startProgram } from "./support/program.ts";
import type { Program } from "./support/program.ts";

const DAY_MS = 86_400_000;
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-showcase-"));
let dev: Program;
let variables: Record<string, string>;
let showcase: Showcase;
let url: string;

async function start(): Promise<void> {
  dev = startProgram(["scripts/dev.ts", "--demo"], variables);
  expect(await dev.says("Stop with Ctrl-C"), dev.output()).toBe(true);
  showcase = readShowcase(directory) ?? {
    org_id: "",
    owner_key: "",
    billing_key: "",
    member_key: "",
  };
}

beforeAll(async () => {
  const { ports, variables: chosen } = await devPorts();
  url = `http://127.0.0.1:${ports.eu}`;
  variables = {
    ...chosen,
    DEV_DIR: directory,
    SANDBOX: "on", // without this, a developer's .dev.vars could make the test pay a provider
    ALIASES: JSON.stringify({ smart: "sandbox/echo" }),
  };
  await start();
});
afterAll(async () => {
  dev.child.kill("SIGTERM");
  await dev.ended;
  removeDirectory(directory);
});

type Json = Readonly<Record<string, unknown>>;
async function read<T>(at: string, key = showcase.owner_key): Promise<T> {
  const response = await fetch(url + at, { headers: { authorization: `Bearer ${key}` } });
  expect([at, response.status]).toEqual([at, 200]);
  return (await response.json()) as T;
}
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

it("npm start -- --demo creates 90 days of usage by 40 end users on 6 models, with exactly matching sums", async () => {
  const from = dayOf(Date.now() - 89 * DAY_MS);
  type Usage = { data: { group: string | null; day: string; cost_micro: number }[] };
  const byModel = await read<Usage>(`/v1/usage?from=${from}&group_by=day,model`);
  const days = new Set(byModel.data.map(({ day }) => day));
  expect(days.size).toBeGreaterThanOrEqual(89); // early in the day, today can have no requests
  const models = new Set(byModel.data.map(({ group }) => group));
  expect(models.delete("sandbox/echo")).toBe(true); // each key was really used once
  expect(models.size).toBe(6);
  expect((await read<{ total: number }>("/v1/users")).total).toBe(40);
  const alerts = await read<{ total: number }>("/v1/alerts");
  expect(alerts.total).toBeGreaterThan(0);
  const response = await fetch(`${url}/admin/v1/orgs/${showcase.org_id}/reconcile`, {
    method: "POST",
    headers: { authorization: `Bearer ${readDemo(directory)?.admin_token}` },
  });
  expect(await response.json()).toMatchObject({ differences: [], held_micro: 0 });
});

it("npm start -- --demo shows each failed request's model and cause", async () => {
  type Failed = {
    generations: { id: string; model: string | null; error: { code: string } | null }[];
  };
  const from = dayOf(Date.now() - 29 * DAY_MS);
  const { generations } = await read<Failed>(
    `/v1/generations?status=failed&from=${from}&limit=100`,
  );
  expect(generations.length).toBeGreaterThan(0);
  for (const { id, model, error } of generations) {
    expect([id, model]).toEqual([id, expect.stringContaining("/")]);
    expect([id, error?.code]).toEqual([id, expect.stringMatching(/^upstream_/)]);
  }
});

it("npm start -- --demo prints console login links and keys for the owner, the accountant and a member", async () => {
  const output = dev.output();
  expect(output).toContain(`${url}/console/#key=${showcase.owner_key}`);
  expect(output).toContain(`${url}/console/#key=${readDemo(directory)?.admin_token}`);
  const roles = [];
  for (const key of [showcase.owner_key, showcase.billing_key, showcase.member_key]) {
    const response = await fetch(`${url}/console/api/login`, {
      method: "POST",
      headers: { origin: url, "content-type": "application/json" },
      body: JSON.stringify({ key }),
    });
    expect(response.status).toBe(200);
    const cookie = response.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
    const session = await fetch(`${url}/console/api/session`, { headers: { cookie } });
    roles.push(((await session.json()) as Json)["role"]);
  }
  expect(roles).toEqual(["owner", "billing", "member"]);
  expect(statSync(path.join(directory, "showcase.json")).mode & 0o777).toBe(0o600);
});

it("npm start -- --demo changes nothing when started again", async () => {
  const before = showcase;
  const balance = await read<Json>("/v1/balance");
  dev.child.kill("SIGTERM");
  expect(await dev.ended).toBe(0);
  await start();
  expect(showcase).toEqual(before);
  expect(await read<Json>("/v1/balance")).toEqual(balance);
});
