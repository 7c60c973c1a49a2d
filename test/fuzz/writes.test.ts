import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ADMIN_TOKEN, addKey } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { Accounts, sendRequest, silenceLog } from "./send-request.ts";
import type { Answer } from "./send-request.ts";
import { findFaults, mustHold, mustEqual, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { at, mutatedBytes, mutations, describeValue } from "./mutate.ts";
import type { Mutation } from "./mutate.ts";
import * as seeds from "./seeds.ts";
import { storedData } from "./stored-data.ts";

beforeAll(silenceLog);
afterAll(() => {
  vi.restoreAllMocks();
});

/** A call that writes. Placeholders in its path are replaced when it is sent. */
type Write = {
  readonly method: "POST" | "PATCH";
  readonly path: string;
  readonly good: readonly object[];
  /** The path at which the written object can be read. */
  readonly read?: (answer: Record<string, unknown>, path: string) => string;
};
const named = (answer: Record<string, unknown>): string =>
  `/v1/users/${encodeURIComponent(String(answer["external_id"]))}`;
const same = (_answer: unknown, path: string): string => path;

const WRITES: readonly Write[] = [
  { method: "POST", path: "/v1/users", good: seeds.END_USERS, read: named },
  { method: "PATCH", path: "/v1/users/known", good: seeds.END_USER_CHANGES, read: same },
  { method: "PATCH", path: "/v1/orgs/ORG/settings", good: seeds.SETTINGS, read: same },
  { method: "PATCH", path: "/v1/orgs/ORG", good: seeds.ORGANIZATION_CHANGES, read: same },
  { method: "POST", path: "/v1/keys", good: seeds.KEYS },
  { method: "POST", path: "/admin/v1/orgs", good: seeds.NEW_ORGANIZATIONS },
  { method: "PATCH", path: "/admin/v1/orgs/ORG", good: seeds.ORGANIZATION_CHANGES, read: same },
  { method: "POST", path: "/admin/v1/orgs/ORG/members", good: seeds.MEMBERS },
  {
    method: "PATCH",
    path: "/admin/v1/orgs/ORG/members/MEMBER",
    good: [{ role: "owner" }, ...seeds.MEMBERS],
  },
  { method: "POST", path: "/admin/v1/orgs/ORG/members/MEMBER/keys", good: seeds.KEYS },
  { method: "PATCH", path: "/admin/v1/orgs/ORG/keys/KEY", good: seeds.KEY_CHANGES, read: same },
  { method: "POST", path: "/admin/v1/orgs/ORG/credits", good: seeds.CREDITS },
  { method: "POST", path: "/admin/v1/orgs/ORG/settle", good: seeds.UNSAVED },
];
const CASES = WRITES.flatMap((write) => write.good.map((seed) => ({ ...write, seed })));
const SEEDS = CASES.map(({ seed }) => seed);

const accounts = new Accounts();
let spare: { readonly of: Account; readonly keyId: string } | null = null;
let before: { readonly of: string; readonly text: string } | null = null;

/** Creates a key that no fuzzer needs, so that its limit can become 1. */
async function spareKey(account: Account): Promise<string> {
  if (spare?.of !== account) {
    spare = { of: account, keyId: (await addKey(account.orgId, account.memberId)).keyId };
    await sendRequest({
      method: "POST",
      path: "/v1/users",
      headers: headersFor(account.key),
      body: '{"external_id":"known"}',
    });
  }
  return spare.keyId;
}

function headersFor(token: string): [string, string][] {
  return [
    ["content-type", "application/json"],
    ["authorization", `Bearer ${token}`],
  ];
}

/** Returns the account's view of a path. */
async function seen(path: string, token: string): Promise<unknown> {
  const answer = await sendRequest({ method: "GET", path, headers: headersFor(token) });
  return answer === null ? null : JSON.parse(answer.text);
}

/** Checks that an accepted write can be read as it was returned. */
async function mustBeWritten(
  write: Write,
  path: string,
  answer: Answer,
  token: string,
): Promise<void> {
  const body = JSON.parse(answer.text) as Record<string, unknown>;
  const place = write.read?.(body, path);
  if (place !== undefined) mustEqual(await seen(place, token), body, "it was answered otherwise");
}

function shownWrite(mutation: Mutation): string {
  const { method, path } = at(CASES, mutation.seed);
  return `${method} ${path} ${describeValue(SEEDS, mutation)}`;
}

async function isWhole(mutation: Mutation): Promise<CheckResult> {
  const account = await accounts.next(3);
  const { orgId, memberId } = account;
  const write = at(CASES, mutation.seed);
  const keyId = await spareKey(account);
  if (before?.of !== orgId) before = { of: orgId, text: await storedData(orgId) };
  const path = write.path.replace("ORG", orgId).replace("MEMBER", memberId).replace("KEY", keyId);
  const token = path.startsWith("/admin") ? ADMIN_TOKEN : account.key;
  const answer = await sendRequest({
    method: write.method,
    path,
    headers: headersFor(token),
    body: mutatedBytes(SEEDS, mutation),
  });
  if (answer === null) throw new Error("it could not be sent");
  const earlier = before.text;
  const after = await storedData(orgId);
  before = { of: orgId, text: after };
  if (answer.status >= 300) {
    mustHold(after === earlier, "a refusal that changed something", earlier, after);
    return "refused";
  }
  await mustBeWritten(write, path, answer, token);
  return "accepted";
}

describe("a write with any body", () => {
  it(
    `returns an error without changing anything, or stores exactly the returned data, for ${runsOf("writes to the application")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const checking = { inputs: mutations(CASES.length), show: shownWrite, check: isWhole };
      expect(await findFaults("writes to the application", checking)).toBe("");
    },
  );
});
