import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ConsoleSession } from "../../src/index.ts";
import { sha256HexSync } from "../../src/shared/hash.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import { openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { login, callFromPage } from "./console-client.ts";

const MINUTE_MS = 60_000;

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});
afterEach(() => shiftClock(null));

/** Makes this number of calls with the session's cookie directly to its object. */
function callOften(cookie: string, times: number): Promise<void> {
  const value = cookie.slice(cookie.indexOf("=") + 1);
  const object = env.CONSOLE_SESSION.getByName(value.slice(-128, -64));
  return runInDurableObject(object, (sessions: ConsoleSession) => {
    for (let n = 0; n < times; n++) {
      expect(sessions.enter(sha256HexSync(value), true).ok).toBe(true);
    }
  });
}

describe("each console session of a key", () => {
  it("counts its calls toward a shared limit of 300 calls per minute", async () => {
    const { key } = await openAccount();
    const cookies = [await login(key), await login(key), await login(key)];
    await callOften(cookies[0] ?? "", 298);
    const statuses: number[] = [];
    for (const cookie of cookies) statuses.push((await callFromPage("/session", cookie)).status);
    expect(statuses).toEqual([200, 200, 429]);
    shiftClock(MINUTE_MS);
    expect((await callFromPage("/session", cookies[0])).status).toBe(200);
  });

  it("ends automatically, oldest first, if the key has more than 20 console sessions", async () => {
    const { key } = await openAccount();
    const cookies: string[] = [];
    for (let n = 0; n < 22; n++) {
      if (n === 20) shiftClock(MINUTE_MS);
      cookies.push(await login(key));
    }
    const statuses: number[] = [];
    for (const cookie of cookies) statuses.push((await callFromPage("/session", cookie)).status);
    expect(statuses).toEqual([401, 401, ...Array.from({ length: 20 }, () => 200)]);
  });

  it("ends when a rotation of the key sets end_sessions, even while the old secret still works", async () => {
    const { key, keyId } = await openAccount();
    const [cookie, other] = [await login(key), await login(account.key)];
    const rotate = (body: object): Promise<Response> =>
      send(`/v1/keys/${keyId}/rotate`, {
        key,
        body: { overlap_seconds: 600, ...body },
        headers: { "idempotency-key": crypto.randomUUID() },
      });
    expect((await rotate({})).status).toBe(201);
    expect((await callFromPage("/session", cookie)).status).toBe(200);
    expect((await rotate({ end_sessions: true })).status).toBe(201);
    expect((await callFromPage("/session", cookie)).status).toBe(401);
    expect((await callFromPage("/session", other)).status).toBe(200);
    expect((await callFromPage("/session", await login(key))).status).toBe(200);
  });
});
