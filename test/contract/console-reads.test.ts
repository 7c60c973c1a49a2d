import { beforeAll, describe, expect, it } from "vitest";
import { OWN_KEY_PATHS } from "../../src/console/allowed-calls.ts";
import { KEY_ROUTES } from "../../src/routes.ts";
import { ADMIN_TOKEN, admin, chat, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { callFromPage, login } from "./console-client.ts";
import { createKey } from "./key-client.ts";

const ONLY_SANDBOX = { allowed_models: ["sandbox/echo", "sandbox/think"] };
/** A model that each caller can call, one that only some can call, and an unknown one. */
const MODELS = ["sandbox/echo", "sandbox/think", "acme/nothing"];

let account: Account;
let limited: string;
beforeAll(prepareAccount);

/** Creates an account with a price list of its own and a policy, and a key with limits. */
async function prepareAccount(): Promise<void> {
  account = await openAccount();
  const { key, orgId } = account;
  await (await chat(key)).text();
  const from = new Date(Date.now() + 7_200_000).toISOString();
  const row = { list: "of-reads", item: "sandbox/echo", from, price: { input: 9, output: 11 } };
  expect((await admin("POST", "/prices", { rows: [row] })).status).toBe(201);
  await admin("PATCH", `/orgs/${orgId}`, { price_list: "of-reads" });
  const path = `/v1/orgs/${orgId}/settings`;
  const set = await send(path, { method: "PATCH", key, body: { policy: ONLY_SANDBOX } });
  expect(set.status).toBe(200);
  limited = (await createKey(key, { allowed_models: ["sandbox/echo"] })).key;
}

/** Returns the reads of the route table whose path has no ID of a stored object. */
function readPaths(): readonly string[] {
  return KEY_ROUTES.filter(({ method, path }) => method === "GET" && path !== "/v1/generation")
    .flatMap(({ path }) => {
      const ofModels = path.startsWith("/v1/models/:id");
      return ofModels ? MODELS.map((id) => path.replace(/:id\{[^/]+\}/, id)) : [path];
    })
    .map((path) => path.replace(":org_id", account.orgId))
    .filter((path) => !path.includes(":"));
}

/**
 * Returns a status and body without the values that the compared request itself changes: times of
 * use and requests left.
 */
async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text();
  return [
    response.status,
    text.replaceAll(/"last_used_at":[^,}]+/g, "").replaceAll(/"(remaining|reset_ms)":[^,}]+/g, ""),
  ];
}

type Read = readonly [path: string, answer: unknown];

async function readsByKey(key: string, paths = readPaths()): Promise<readonly Read[]> {
  const reads: Read[] = [];
  for (const path of paths) reads.push([path, await bodyOf(await send(path, { key }))]);
  return reads;
}

async function readsInConsole(cookie: string, paths = readPaths()): Promise<readonly Read[]> {
  const reads: Read[] = [];
  for (const path of paths) reads.push([path, await bodyOf(await callFromPage(path, cookie))]);
  return reads;
}

describe("a read in the console", () => {
  it("returns the data that /v1 returns to the key used for the login", async () => {
    expect(readPaths().length).toBeGreaterThan(25);
    const cookie = await login(account.key);
    expect(await readsInConsole(cookie)).toEqual(await readsByKey(account.key));
  });

  it("returns the data that /v1 returns to a key with limits", async () => {
    expect(await readsInConsole(await login(limited))).toEqual(await readsByKey(limited));
  });

  it("returns the data that /v1 returns to the owner's key if an operator views the customer", async () => {
    const operator = await login(ADMIN_TOKEN);
    await callFromPage("/as", operator, { method: "POST", body: { org: account.orgId } });
    const paths = readPaths().filter((path) => !OWN_KEY_PATHS.has(path));
    expect(await readsInConsole(operator, paths)).toEqual(await readsByKey(account.key, paths));
  });
});
