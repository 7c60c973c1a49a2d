import { cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundleWorker } from "../../scripts/bundle.ts";
import { freePort } from "../../scripts/ports.ts";
import { HOST, startRegion } from "../../scripts/region.ts";
import type { Region } from "../../scripts/region.ts";
import type { RegionName } from "../../scripts/region-names.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { makeOrganization } from "./support/organization.ts";
import { ADMIN_TOKEN } from "./support/two-regions.ts";

/**
 * The third region is fictional: a row in the table of regions, an `[env.apac]`, and its secrets.
 */
const NAMES = ["eu", "us", "apac"] as const;
type Name = (typeof NAMES)[number];
const ROOT = path.join(import.meta.dirname, "../..");
const REFUSED_WITHIN_MS = 10_000;

const directory = mkdtempSync(path.join(tmpdir(), "turnpike-three-"));
const regions = new Map<Name, Region>();

beforeAll(async () => {
  const toml = readFileSync(path.join(ROOT, "wrangler.toml"), "utf8");
  const us = toml.slice(toml.indexOf("[env.us]"));
  const apac = us.replaceAll("env.us", "env.apac").replaceAll("turnpike-us", "turnpike-apac");
  writeFileSync(path.join(directory, "wrangler.toml"), `${toml}\n${apac}`);
  cpSync(path.join(ROOT, "migrations"), path.join(directory, "migrations"), { recursive: true });
  const code = await bundleWorker(false, path.join(ROOT, "test/fixtures/apac-worker.ts"));
  const ports = new Map<Name, number>();
  for (const name of NAMES) ports.set(name, await freePort());
  for (const name of NAMES) {
    const peers = NAMES.filter((other) => other !== name).map((other) => {
      return { region: other as RegionName, url: `http://${HOST}:${ports.get(other)}` };
    });
    const link = peers.flatMap(({ region: other }) => [
      [`PEER_OUT_${other.toUpperCase()}`, `${name}-to-${other}-`.padEnd(40, "s")],
      [`PEER_IN_${other.toUpperCase()}`, `${other}-to-${name}-`.padEnd(40, "s")],
    ]);
    const bindings = {
      KEY_SECRETS: `a:${"k".repeat(32)}`,
      ADMIN_TOKEN,
      REGION: name,
      SANDBOX: "on",
      ...(Object.fromEntries(link) as Record<string, string>),
    };
    const port = ports.get(name) ?? 0;
    const region = name as RegionName;
    const own = { region, port, peers, code, bindings, root: directory, onLog: () => undefined };
    regions.set(name, await startRegion(own));
  }
}, 120_000);
afterAll(async () => {
  await Promise.all([...regions.values()].map((region) => region.miniflare.dispose()));
  removeDirectory(directory);
});

function urlOf(name: Name): string {
  return regions.get(name)?.url ?? "";
}

function call(name: Name, key: string, to: string, init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return fetch(`${urlOf(name)}v1${to}`, { ...init, headers });
}

function chat(name: Name, key: string): Promise<Response> {
  const messages = [{ role: "user", content: "Hello there" }];
  const body = JSON.stringify({ model: "sandbox/echo", messages });
  return call(name, key, "/chat/completions", { method: "POST", body });
}

async function balance(name: Name, key: string): Promise<number> {
  const response = await call(name, key, "/balance");
  expect(response.status).toBe(200);
  return ((await response.json()) as { credits_micro: number }).credits_micro;
}

describe.each(NAMES)("a key whose home region is %s, one of three regions", (home) => {
  it("works in every region until it is revoked, and pays from the home region's balance, if it is global", async () => {
    const { key, orgId } = await makeOrganization(`${urlOf(home)}admin/v1`, ADMIN_TOKEN, {
      keyScope: "global",
      credits: 1_000_000,
    });
    expect(key.startsWith(`svc_sk_gbl_${home}_live_`)).toBe(true);
    const costs: number[] = [];
    for (const name of NAMES) {
      const before = await balance(home, key);
      const answer = await chat(name, key);
      expect([name, answer.status]).toEqual([name, 200]);
      expect(answer.headers.get("openai-organization")).toBe(orgId);
      // also called there, and the home region responds
      expect(await balance(name, key)).toBeLessThan(before);
      costs.push(before - (await balance(home, key)));
    }
    expect(new Set(costs).size).toBe(1);
    const { keys } = (await (await call("us", key, "/keys")).json()) as {
      keys: { id: string; region: string }[];
    };
    expect(keys).toMatchObject([{ region: home }]);
    const away = NAMES.find((name) => name !== home) ?? home;
    const ended = await call(away, key, `/keys/${keys[0]?.id}`, { method: "DELETE" });
    expect(ended.status).toBe(200);
    expect((await chat(home, key)).status).toBe(401);
    for (const name of NAMES) {
      const status = async (): Promise<string> => `${name} ${(await chat(name, key)).status}`;
      await expect.poll(status, { timeout: REFUSED_WITHIN_MS }).toBe(`${name} 401`);
    }
  });

  it("works only in the home region, and gets 403 in all other regions, if it is regional", async () => {
    const { key } = await makeOrganization(`${urlOf(home)}admin/v1`, ADMIN_TOKEN, {
      credits: 1_000_000,
    });
    for (const name of NAMES) {
      expect((await chat(name, key)).status).toBe(name === home ? 200 : 403);
    }
  });
});
