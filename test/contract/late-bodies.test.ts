import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { beforeEach, expect, it } from "vitest";
import type { Wallet } from "../../src/index.ts";
import { addMember, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { deleteKey, keysOf } from "./key-client.ts";

let account: Account;
let revokedOwner: Account;

beforeEach(async () => {
  account = await openAccount();
  revokedOwner = await addMember(account.orgId, "owner");
});

/** Returns the number of admissions of the revoked key in the account's wallet. */
function admissions(): Promise<number> {
  return runInDurableObject(env.WALLET.getByName(account.orgId), (_wallet: Wallet, { storage }) => {
    return storage.sql
      .exec<{ n: number }>(
        "SELECT count(*) AS n FROM admissions WHERE key = (SELECT number FROM keys WHERE key_id = ?)",
        revokedOwner.keyId,
      )
      .one().n;
  });
}

/**
 * Returns the response to a request that was admitted, and whose body arrives after the key was
 * revoked.
 */
async function lateAnswer(method: string, path: string, fields: object): Promise<Response> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const answer = send(path, { method, key: revokedOwner.key, body: readable });
  await expect.poll(admissions).toBe(1);
  expect((await deleteKey(account.key, revokedOwner.keyId)).status).toBe(200);
  void writer.write(new TextEncoder().encode(JSON.stringify(fields))).then(() => writer.close());
  return answer;
}

const organization = (): string => `/v1/orgs/${account.orgId}`;

/** Returns everything that a late body could change. */
async function state(): Promise<unknown[]> {
  const paths = ["/v1/users", organization(), `${organization()}/settings`];
  const answers = await Promise.all(paths.map((path) => send(path, { key: account.key })));
  const texts = await Promise.all(answers.map((response) => response.text()));
  return [...texts, (await keysOf(account.key)).map(({ name }) => name)];
}

it.each([
  ["POST", () => "/v1/users", { external_id: "late" }],
  ["POST", () => "/v1/users", { external_id: "there", daily_quota_dollars: 1 }],
  ["PATCH", () => "/v1/users/there", { daily_quota_dollars: 1 }],
  ["PATCH", () => `${organization()}/settings`, { low_balance_threshold_dollars: 1 }],
  ["PATCH", organization, { name: "Late" }],
  ["POST", () => "/v1/keys", { name: "late" }],
])(
  "a request to %s returns 401, and changes nothing, if its body arrives after the key's revocation",
  async (...row) => {
    const [method, path, fields] = row;
    await send("/v1/users", { key: account.key, body: { external_id: "there" } });
    const before = await state();
    const response = await lateAnswer(method, path(), fields);
    expect((await errorOf(response, 401)).type).toBe("invalid_api_key");
    expect(await state()).toEqual(before);
  },
);
