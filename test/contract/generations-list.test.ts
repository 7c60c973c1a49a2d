import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { mintId } from "../../src/shared/id.ts";
import { holdOf, setClock, valueOf } from "../wallet/wallet-fixture.ts";
import { addMember, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

const DAY_MS = 86_400_000;
/** A time in the future, so that no midnight passes and nothing is old enough to be deleted. */
const NOON = Date.UTC(2036, 10, 20, 12);
const SETTLED_ONLY = [
  "model",
  "provider",
  "region",
  "streamed",
  "prompt_tokens",
  "cached_tokens",
  "cache_write_tokens",
  "completion_tokens",
  "reasoning_tokens",
  "price",
  "price_from",
  "price_list",
  "first_byte_ms",
  "duration_ms",
  "estimated",
  "finish_reason",
  "asked_model",
  "door",
  "client_left_ms",
  "error",
];
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
type Listed = Record<string, unknown> & { readonly id: string };
type Page = { readonly generations: readonly Listed[]; readonly next_after?: string };

let account: Account;
let member: Account;
beforeAll(async () => {
  account = await openAccount();
  member = await addMember(account.orgId, "member");
});
afterEach(() => setClock(null));

async function page(query = "", key = account.key): Promise<Page> {
  const response = await send(`/v1/generations${query}`, { key });
  expect(response.status).toBe(200);
  return response.json<Page>();
}

async function paid(key: string, user?: string): Promise<string> {
  const response = await chat(key, user === undefined ? {} : { user });
  expect(response.status).toBe(200);
  return response.headers.get("x-request-id") ?? "";
}

describe("GET /v1/generations", () => {
  it("returns all receipts in pages, newest first", async () => {
    const { key } = await openAccount();
    const paidIds = [];
    for (let n = 0; n < 5; n++) paidIds.push(await paid(key));
    const seen = [];
    for (let after = ""; ;) {
      const { generations, next_after } = await page(`?limit=2${after}`, key);
      seen.push(...generations);
      if (next_after === undefined) break;
      after = `&after=${next_after}`;
    }
    expect(seen.map(({ id }) => id)).toEqual(paidIds.toReversed());
    for (const one of seen) {
      const own = await send(`/v1/generations/${one.id}`, { key });
      expect(await own.json()).toEqual(one);
    }
  });

  it("filters receipts by end user, model, key, status and day, and by any combination", async () => {
    setClock(NOON);
    const other = await openAccount();
    const { key } = other;
    const ann = await paid(key, "ann");
    const bob = await paid(key, "bob");
    const ids = async (query: string): Promise<string[]> =>
      (await page(query, key)).generations.map(({ id }) => id);
    expect(await ids("?external_id=ann")).toEqual([ann]);
    expect(await ids("?model=sandbox%2Fecho")).toEqual([bob, ann]);
    expect(await ids("?model=smart")).toEqual([]);
    expect(await ids(`?key_id=${other.keyId}&external_id=bob&status=settled`)).toEqual([bob]);
    expect(await ids("?key_id=key_0")).toEqual([]);
    expect(await ids("?status=held")).toEqual([]);
    const [today, before] = [dayOf(NOON), dayOf(NOON - DAY_MS)];
    expect(await ids(`?from=${today}&to=${today}`)).toEqual([bob, ann]);
    expect(await ids(`?to=${before}`)).toEqual([]);
  });

  it("lists open and failed requests as well, with null for missing values", async () => {
    const other = await openAccount();
    const wallet = env.WALLET.getByName(other.orgId);
    const [open, gone] = [holdOf(100, { keyId: other.keyId }), holdOf(50, { keyId: other.keyId })];
    for (const hold of [open, gone]) valueOf(await wallet.hold(hold));
    valueOf(await wallet.void(gone.id));
    const { generations } = await page("", other.key);
    expect(generations).toHaveLength(2);
    expect(generations.find(({ id }) => id === open.id)).toEqual({
      id: open.id,
      tags: {},
      request_id: open.id,
      created_at: expect.any(String),
      status: "held",
      key_id: other.keyId,
      external_id: null,
      held_micro: 100,
      cost_micro: 0,
      absorbed_micro: 0,
      lines: [],
      purpose: null,
      quota_micro: 0,
      failed_attempts: [],
      skipped: [],
      attempts: [],
      ...Object.fromEntries(SETTLED_ONLY.map((name) => [name, null])),
    });
    expect(generations.find(({ id }) => id === gone.id)).toMatchObject({ status: "voided" });
    expect((await page("?status=voided", other.key)).generations).toHaveLength(1);
  });

  it("shows a member only requests with the member's own keys, including revoked keys", async () => {
    const theirs = await paid(account.key, "shared");
    const own = await paid(member.key, "shared");
    const ids = async (query: string): Promise<string[]> =>
      (await page(query, member.key)).generations.map(({ id }) => id);
    expect(await ids("")).toEqual([own]);
    expect(await ids("?external_id=shared")).toEqual([own]);
    expect(await ids(`?key_id=${account.keyId}`)).toEqual([]);
    const all = (await page("?external_id=shared")).generations.map(({ id }) => id);
    expect(all).toEqual([own, theirs]);
  });

  it("reads at most 10,000 of 30,000 rows per page, and finds all matches across pages", async () => {
    const other = await openAccount();
    await paid(other.key, "rare");
    const wallet = env.WALLET.getByName(other.orgId);
    const createdMs = Date.now() + 1000;
    await runInDurableObject(wallet, (_instance: Wallet, { storage: { sql } }) => {
      const ids = JSON.stringify(
        Array.from({ length: 30_000 }, (_, n) => mintId("req_", createdMs + Math.floor(n / 100))),
      );
      for (let from = 0; from < 30_000; from += 10_000) {
        sql.exec(
          `INSERT INTO requests (id, state, admitted_at, expires_at, least, most, granted,
            external_id, key, named)
          SELECT value, 'voided', ?, 0, 1, 1, 1, 'common', 1, 0 FROM json_each(?)`,
          createdMs,
          JSON.stringify((JSON.parse(ids) as string[]).slice(from, from + 10_000)),
        );
      }
    });
    let pages = 0;
    const found = [];
    for (let after = ""; ; pages++) {
      const read = await runInDurableObject(wallet, async (instance: Wallet, { storage }) => {
        const before = readRows(storage.sql);
        const answer = await instance.requests({
          fromMs: 0,
          beforeMs: createdMs * 2,
          after: after === "" ? null : after,
          limit: 50,
          state: null,
          model: null,
          externalId: "rare",
          keyIds: null,
        });
        return { answer, rows: readRows(storage.sql) - before };
      });
      const { requests, nextAfter } = valueOf(read.answer);
      // Returns the last page and the number of rows read in between.
      expect(read.rows).toBeLessThanOrEqual(20_010);
      found.push(...requests);
      if (nextAfter === null) break;
      after = nextAfter;
    }
    expect(found).toHaveLength(1);
    expect(pages).toBe(3);
    expect((await page("?limit=100", other.key)).generations).toHaveLength(100);
  });
});

/** Counts the rows that every statement reads from now on. Wraps each storage once. */
const counted = new WeakMap<SqlStorage, { rows: number }>();
function readRows(sql: SqlStorage): number {
  const known = counted.get(sql);
  if (known !== undefined) return known.rows;
  const count = { rows: 0 };
  counted.set(sql, count);
  const exec = sql.exec.bind(sql);
  sql.exec = (...args: Parameters<typeof exec>): never => {
    const cursor = exec(...args);
    const all = cursor.toArray.bind(cursor);
    cursor.toArray = () => {
      const rows = all();
      count.rows += cursor.rowsRead;
      return rows;
    };
    return cursor as never;
  };
  return 0;
}

describe("GET /v1/holds", () => {
  it("lists open holds in pages, oldest first, and shows members only holds of their own keys", async () => {
    const other = await openAccount();
    const theirs = await addMember(other.orgId, "member");
    const wallet = env.WALLET.getByName(other.orgId);
    const holds = [
      holdOf(10, { keyId: other.keyId, externalId: "ann" }),
      holdOf(20, { keyId: other.keyId }),
      holdOf(30, { keyId: theirs.keyId }),
    ];
    for (const hold of holds) valueOf(await wallet.hold(hold));
    const ids = holds.map(({ id }) => id).toSorted();
    const response = await send("/v1/holds?limit=2", { key: other.key });
    const first = await response.json<{ holds: Listed[]; next_after: string }>();
    expect(first.holds.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    const rest = await send(`/v1/holds?after=${first.next_after}`, { key: other.key });
    const last = await rest.json<{ holds: Listed[] }>();
    expect(last).not.toHaveProperty("next_after");
    expect(last.holds.map(({ id }) => id)).toEqual(ids.slice(2));
    expect([...first.holds, ...last.holds].find(({ id }) => id === holds[0]?.id)).toEqual({
      id: holds[0]?.id,
      since: expect.stringMatching(/Z$/),
      granted_micro: 10,
      key_id: other.keyId,
      external_id: "ann",
      hold_id: null,
      purpose: null,
      expires_at: expect.stringMatching(/Z$/),
    });
    const own = await (await send("/v1/holds", { key: theirs.key })).json<{ holds: Listed[] }>();
    expect(own.holds).toMatchObject([{ id: holds[2]?.id, granted_micro: 30 }]);
    for (const { id } of holds) valueOf(await wallet.void(id));
    expect(await (await send("/v1/holds", { key: other.key })).json()).toEqual({ holds: [] });
  });
});

describe("GET /v1/usage grouped by two fields", () => {
  it("returns requests and tokens per day and group in pages, including usage not yet published", async () => {
    const other = await openAccount();
    const wallet = env.WALLET.getByName(other.orgId);
    const use = async (ms: number, user: string): Promise<void> => {
      setClock(ms);
      await paid(other.key, user);
    };
    const start = NOON;
    await use(start, "ann");
    await use(start + DAY_MS, "bob");
    await wallet.poke(); // a checkpoint, after which rows are only in memory
    await use(start + DAY_MS, "ann");
    await use(start + DAY_MS, "bob");
    const query = `from=${dayOf(start)}&to=${dayOf(start + DAY_MS)}&group_by=day,user`;
    type Usage = {
      data: Record<string, unknown>[];
      total: { requests: number };
      next_after?: string;
    };
    const read = async (more = ""): Promise<Usage> =>
      (await send(`/v1/usage?${query}${more}`, { key: other.key })).json<Usage>();
    const whole = await read();
    expect(whole.data.map(({ day, group, requests }) => [day, group, requests])).toEqual([
      [dayOf(start), "ann", 1],
      [dayOf(start + DAY_MS), "ann", 1],
      [dayOf(start + DAY_MS), "bob", 2],
    ]);
    expect(whole.data.every(({ cached_tokens }) => cached_tokens === 0)).toBe(true);
    expect(whole.total.requests).toBe(4);
    const rows = [];
    for (let after = ""; ;) {
      const { data, next_after } = await read(`&limit=1${after}`);
      rows.push(...data);
      if (next_after === undefined) break;
      after = `&after=${encodeURIComponent(next_after)}`;
    }
    expect(rows).toEqual(whole.data);
    const bad = await send(`/v1/usage?${query}&after=ann`, { key: other.key });
    expect((await errorOf(bad, 400)).param).toBe("after");
  });
});
