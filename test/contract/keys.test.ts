import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { shiftClock, WatchedDatabase } from "../keys/key-fixture.ts";
import { eventually, MINUTE_MS } from "../keys/register-fixture.ts";
import { errorOf, openAccount, send, addMember } from "./client.ts";
import type { Account } from "./client.ts";
import type { KeyBody } from "./key-client.ts";
import { createKey, deleteKey, failingBindings, fillKeys, keysOf, statusOf } from "./key-client.ts";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});
afterEach(() => shiftClock(null));

/** Returns `last_used_at` of the account's key in Unix ms, or 0 before its first use. */
/**
 * Maximum difference between the clocks of a test and of the objects, because each moves with its
 * own input and output.
 */
const CLOCKS_MS = 1000;

/** Reads the database, because a request with the key would be a use. */
async function lastUsed(): Promise<number> {
  const row = await env.DB.prepare("SELECT last_used_at FROM keys WHERE org_id = ?")
    .bind(account.orgId)
    .first<{ last_used_at: number | null }>();
  return row?.last_used_at ?? 0;
}

/** Sends this number of concurrent requests with the account's key. All must be admitted. */
async function burst(count: number): Promise<void> {
  const answers = await Promise.all(Array.from({ length: count }, () => statusOf(account.key)));
  expect(new Set(answers)).toEqual(new Set([200]));
}

type Listed = { readonly keys: readonly KeyBody[]; readonly next_after?: string };

async function listOf(path: string): Promise<Listed> {
  const response = await send(path, { key: account.key });
  expect(response.status).toBe(200);
  return response.json<Listed>();
}

function sortKeysOf(keys: readonly KeyBody[]): readonly string[] {
  return keys.map((one) => `${one.created_at} ${one.id}`);
}

/** Returns the statement, which calls `run` for every way of running it. */
function wrapStatement(
  statement: D1PreparedStatement,
  run: <T>(work: () => Promise<T>) => Promise<T>,
): D1PreparedStatement {
  return {
    bind: (...values: unknown[]) => wrapStatement(statement.bind(...values), run),
    first: () => run(() => statement.first()),
    all: () => run(() => statement.all()),
    run: () => run(() => statement.run()),
  } as unknown as D1PreparedStatement;
}

/** Records the number of rows that each `all` reads. */
function countingReads(statement: D1PreparedStatement, reads: number[]): D1PreparedStatement {
  return wrapStatement(statement, async (work) => {
    const answer = await work();
    const { meta } = (answer ?? {}) as { meta?: { rows_read: number } };
    if (meta !== undefined) reads.push(meta.rows_read);
    return answer;
  });
}

const RECORD =
  "id member_id name prefix region scope rpm_limit created_at last_used_at revoked".split(" ");

describe("GET /v1/keys", () => {
  it("returns every key without its secret", async () => {
    const created = await createKey(account.key, { name: "second", scope: "global", rpm_limit: 7 });
    const [second, first] = await keysOf(account.key);
    expect(second).toEqual({
      id: created.id,
      member_id: account.memberId,
      name: "second",
      prefix: created.key.slice(0, "svc_sk_gbl_eu_live_".length + 4),
      region: "eu",
      scope: "global",
      rpm_limit: 7,
      created_at: created.created_at,
      last_used_at: null,
      revoked: false,
    });
    expect(first).toMatchObject({ id: account.keyId, name: "First key", scope: "regional" });
    expect(Object.keys(first ?? {})).toEqual(RECORD);
  });

  it("returns keys newest first, including revoked keys", async () => {
    const ids: string[] = [];
    for (const offsetMs of [1000, 3000, 2000]) {
      shiftClock(offsetMs);
      ids.push((await createKey(account.key)).id);
    }
    shiftClock(null);
    const [oldest = "", newest = "", middle = ""] = ids;
    expect((await deleteKey(account.key, middle)).status).toBe(200);
    const listed = await keysOf(account.key);
    expect(listed.map((one) => one.id)).toEqual([newest, middle, oldest, account.keyId]);
    expect(listed.map((one) => one.revoked)).toEqual([false, true, false, false]);
  });

  it("returns all active and 100 revoked keys on the first page, and the rest on further pages", async () => {
    await fillKeys(account, 900, { createdAt: 5 });
    await fillKeys(account, 600, { createdAt: 5, revokedAt: 6 });
    await fillKeys(account, 98, { createdAt: 4 });
    const first = await listOf("/v1/keys");
    expect(first.keys).toHaveLength(999 + 100);
    expect(sortKeysOf(first.keys)).toEqual(sortKeysOf(first.keys).toSorted().toReversed());
    expect(await listOf("/v1/keys")).toEqual(first);
    const revoked = first.keys.filter((one) => one.revoked);
    for (let after = first.next_after; after !== undefined;) {
      const page = await listOf(`/v1/keys?revoked=true&limit=70&after=${after}`);
      revoked.push(...page.keys);
      after = page.next_after;
    }
    expect(revoked.every((one) => one.revoked)).toBe(true);
    expect(new Set(revoked.map((one) => one.id)).size).toBe(600);
    expect(sortKeysOf(revoked)).toEqual(sortKeysOf(revoked).toSorted().toReversed());
    const whole = await listOf("/v1/keys?revoked=true");
    expect(whole.keys).toEqual(revoked.slice(0, 100));
  });

  it("reads at most 500 rows in an organization with 5,000 revoked keys, even for a member", async () => {
    await fillKeys(account, 5000, { createdAt: 5, revokedAt: 6 });
    const reads: number[] = [];
    const prepare = (sql: string): D1PreparedStatement => countingReads(env.DB.prepare(sql), reads);
    const bindings = { ...env, DB: { prepare } as unknown as D1Database };
    const member = await addMember(account.orgId, "member");
    for (const key of [account.key, member.key]) {
      for (const path of ["/v1/keys", "/v1/keys?revoked=true"]) {
        expect((await send(path, { key, bindings })).status).toBe(200);
      }
    }
    expect(reads).toHaveLength(4);
    expect(Math.max(...reads)).toBeLessThan(500);
  });

  it("makes at most eight concurrent database calls per organization", async () => {
    let [now, max] = [0, 0];
    const eight = Promise.withResolvers<void>();
    const prepare = (sql: string): D1PreparedStatement =>
      wrapStatement(env.DB.prepare(sql), async (run) => {
        max = Math.max(max, ++now);
        if (now === 8) eight.resolve();
        try {
          await eight.promise;
          await scheduler.wait(30); // waits for a ninth call
          return await run();
        } finally {
          now--;
        }
      });
    const bindings = { ...env, DB: { prepare } as unknown as D1Database };
    const listKeys = (): Promise<Response> => send("/v1/keys", { key: account.key, bindings });
    const answers = await Promise.all(Array.from({ length: 16 }, listKeys));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(max).toBe(8);
  });

  it("returns only the caller's keys to a member, and all keys of the organization to other roles", async () => {
    await openAccount();
    const member = await addMember(account.orgId, "member");
    const all = new Set([account.keyId, member.keyId]);
    for (const role of ["owner", "admin", "billing"] as const) {
      const other = await addMember(account.orgId, role);
      all.add(other.keyId);
      expect(new Set((await keysOf(other.key)).map((one) => one.id))).toEqual(all);
    }
    const own = await createKey(member.key);
    expect((await keysOf(member.key)).map((one) => one.id)).toEqual([own.id, member.keyId]);
  });

  it("applies a member's new role from the next request on", async () => {
    const member = await addMember(account.orgId, "admin");
    expect(await keysOf(member.key)).toHaveLength(2);
    await env.DB.prepare("UPDATE members SET role = 'member' WHERE id = ?")
      .bind(member.memberId)
      .run();
    expect(await keysOf(member.key)).toHaveLength(1);
  });

  it("updates last_used_at within a minute, at most once per minute, and never to an earlier time", async () => {
    const row = await env.DB.prepare("SELECT hash FROM keys WHERE org_id = ?")
      .bind(account.orgId)
      .first<{ hash: string }>();
    const database = new WatchedDatabase();
    const updateCount = (): number =>
      database.about(row?.hash ?? "").filter((sql) => sql.startsWith("UPDATE keys")).length;
    try {
      const startMs = Date.now() - CLOCKS_MS;
      await burst(40);
      await eventually(async () => expect(await lastUsed()).toBeGreaterThanOrEqual(startMs));
      const first = await lastUsed();
      shiftClock(MINUTE_MS / 2);
      await burst(40);
      expect(await lastUsed()).toBe(first);
      expect(updateCount()).toBe(1);
      shiftClock(MINUTE_MS + 1000);
      expect(await statusOf(account.key)).toBe(200);
      // The wallet's alarm can write the last use before the request does. Either way, it is
      // written once.
      const laterMs = startMs + MINUTE_MS / 2;
      await eventually(async () => expect(await lastUsed()).toBeGreaterThanOrEqual(laterMs));
      const last = await lastUsed();
      expect(updateCount()).toBe(2);
      // The clock steps back by two minutes, then forward by more than one. The use is written
      // again, with an earlier time.
      for (const offsetMs of [-MINUTE_MS, 5000]) {
        shiftClock(offsetMs);
        expect(await statusOf(account.key)).toBe(200);
      }
      await eventually(() => expect(updateCount()).toBe(3));
      expect(await lastUsed()).toBe(last);
    } finally {
      database.restore();
    }
  });
});

describe("/v1/keys during a failure", () => {
  it.each([
    ["GET", /live_keys_by_organization/],
    ["GET", /JOIN members/],
    ["POST", /^INSERT INTO keys/],
    ["POST", /JOIN members/],
  ] as const)("returns 503 for %s if the database rejects %s", async (method, statement) => {
    await keysOf(account.key);
    const bindings = failingBindings({ statement });
    const body = method === "POST" ? { name: "x" } : undefined;
    const response = await send("/v1/keys", { method, key: account.key, body, bindings });
    expect(response.headers.get("retry-after")).toBe("1");
    expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
    expect(await keysOf(account.key)).toHaveLength(1);
  });
});
