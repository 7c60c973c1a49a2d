import { afterEach, beforeEach, expect, it } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import { chat, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { createKey, deleteKey } from "./key-client.ts";
import { endSession, createSession } from "./session-client.ts";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});
afterEach(() => shiftClock(null));

/** Returns the objects and statements that ten requests of a rejected credential use. */
async function costOf(key: string): Promise<readonly number[]> {
  const counted = countedBindings();
  const { bindings } = counted;
  for (let n = 0; n < 5; n++) {
    expect((await chat(key, {}, { bindings })).status).toBe(401);
    expect((await send("/v1/models", { key, bindings })).status).toBe(401);
    if (n === 0) Object.assign(counted, { objects: 0, statements: 0 });
  }
  return [counted.objects, counted.statements];
}

it("the gateway rejects revoked keys and ended sessions from its cache, without another object call", async () => {
  const parent = await createKey(account.key);
  const { token: orphan } = await createSession(parent.key);
  const ended = await createSession(account.key);
  for (const key of [parent.key, orphan, ended.token]) expect((await chat(key)).status).toBe(200);
  expect((await deleteKey(account.key, parent.id)).status).toBe(200);
  expect((await endSession(account.key, ended.id)).status).toBe(200);
  for (const key of [parent.key, orphan, ended.token]) expect(await costOf(key)).toEqual([0, 0]);
  expect((await chat(account.key)).status).toBe(200);
});

it("the gateway looks up expired keys for each request, because their expiry can change", async () => {
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const { key, id } = await createKey(account.key, { expires_at });
  shiftClock(2 * 3_600_000);
  for (let n = 0; n < 2; n++) expect((await chat(key)).status).toBe(401);
  const lifted = { method: "PATCH", key: account.key, body: { expires_at: null } };
  expect((await send(`/v1/keys/${id}`, lifted)).status).toBe(200);
  expect((await chat(key)).status).toBe(200);
});
