import { expect } from "vitest";
import { mintId } from "../../src/lib/id.ts";
import { addKey, chat, HELLO, send } from "./client.ts";
import type { Account, Role } from "./client.ts";

export const EVERYONE: readonly Role[] = ["owner", "admin", "billing", "member"];
const SENIORS: readonly Role[] = ["owner", "admin", "billing"];
const OWNERS: readonly Role[] = ["owner"];

const SAY = { model: "sandbox/echo", messages: HELLO };
const VECTOR = { model: "sandbox/embed", input: "Hello there" };

/** Method, route as app.ts has it, the roles that may, the status they get, a body. */
export type Row = readonly [string, string, readonly Role[], number, object?];

/** Every endpoint below /v1 that speaks of refusals in OpenAI's words; test/node/doors.test.ts asks the others. */
export const ROWS: readonly Row[] = [
  ["POST", "/v1/chat/completions", EVERYONE, 200, SAY],
  ["POST", "/v1/completions", EVERYONE, 200, { model: "sandbox/echo", prompt: "Hello there" }],
  ["POST", "/v1/responses", EVERYONE, 200, { model: "sandbox/echo", input: "Hello there" }],
  ["POST", "/v1/embeddings", EVERYONE, 200, VECTOR],
  ["GET", "/v1/models", EVERYONE, 200],
  ["GET", "/v1/models/:id{.+}", EVERYONE, 200],
  ["GET", "/v1/balance", EVERYONE, 200],
  ["GET", "/v1/keys", EVERYONE, 200],
  ["POST", "/v1/keys", EVERYONE, 201, { name: "made by a test" }],
  ["PATCH", "/v1/keys/:id", EVERYONE, 200, { name: "renamed by a test" }],
  ["DELETE", "/v1/keys/:id", EVERYONE, 200],
  ["GET", "/v1/key", EVERYONE, 200],
  ["GET", "/v1/users", EVERYONE, 200],
  ["POST", "/v1/users", EVERYONE, 200, { external_id: "there already" }],
  ["GET", "/v1/users/:external_id{.+}", EVERYONE, 200],
  ["PATCH", "/v1/users/:external_id{.+}", EVERYONE, 200, { daily_quota_dollars: 5 }],
  ["DELETE", "/v1/users/:external_id{.+}", EVERYONE, 200],
  ["GET", "/v1/usage", SENIORS, 200],
  ["GET", "/v1/alerts", SENIORS, 200],
  ["GET", "/v1/generations/:id", EVERYONE, 200],
  ["GET", "/v1/orgs/:org_id", EVERYONE, 200],
  ["PATCH", "/v1/orgs/:org_id", OWNERS, 200, { name: "renamed by a test" }],
  ["GET", "/v1/orgs/:org_id/settings", SENIORS, 200],
  ["PATCH", "/v1/orgs/:org_id/settings", SENIORS, 200, { default_alert_threshold: 0.5 }],
];

/** What belongs to a member: a colleague's is to a `member` as if it did not exist. */
export const OWN_ONLY: readonly Row[] = [
  ["PATCH", "/v1/keys/:id", ["owner", "admin"], 200, { name: "renamed by a test" }],
  ["DELETE", "/v1/keys/:id", SENIORS, 200],
  ["GET", "/v1/generations/:id", SENIORS, 200],
];

/** What a path names: something of an account's, fresh because the call may end it, or nothing there is. */
type Target = {
  readonly of: (account: Account) => Promise<string>;
  readonly unknown: () => string;
};
const TARGETS: Readonly<Record<string, Target>> = {
  keys: { of: keyOf, unknown: () => mintId("key_", Date.now()) },
  generations: { of: generationOf, unknown: () => mintId("req_", Date.now()) },
  users: { of: endUserOf, unknown: () => crypto.randomUUID() },
  orgs: { of: async ({ orgId }) => orgId, unknown: () => crypto.randomUUID() },
};

async function keyOf({ orgId, memberId }: Account): Promise<string> {
  return (await addKey(orgId, memberId)).keyId;
}

export async function generationOf({ key }: Account): Promise<string> {
  return (await chat(key)).headers.get("x-request-id") ?? "";
}

export async function endUserOf({ key }: Account): Promise<string> {
  const id = crypto.randomUUID();
  expect((await send("/v1/users", { key, body: { external_id: id } })).status).toBe(201);
  return id;
}

const targetOf = ([, route]: Row): Target | undefined => TARGETS[route.split("/")[2] ?? ""];
/** Whether a row's path names something of an organisation's. */
export const namesTarget = (row: Row): boolean =>
  row[1].includes(":") && targetOf(row) !== undefined;

/** The id that a row's path has for a call on this account's own things. */
export async function ownId(row: Row, account: Account): Promise<string> {
  return namesTarget(row) ? ((await targetOf(row)?.of(account)) ?? "") : "sandbox/echo";
}

/** An id of the same kind that nothing has. */
export function unknownId(row: Row): string {
  return namesTarget(row) ? (targetOf(row)?.unknown() ?? "") : "sandbox/echo";
}
