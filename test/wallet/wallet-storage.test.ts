import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Generation } from "../../src/shared/generation.ts";
import { DAY_MS } from "../../src/shared/clock.ts";
import { micros } from "../../src/shared/money.ts";
import { getOrInsertName } from "../../src/money/wallet/tables/request-rows.do.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { recordMeasured } from "../measured.ts";
import {
  differences,
  failureOf,
  GENERATION,
  holdOf,
  newWallet,
  rowsOf,
  runAlarm,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const PAGE_BYTES = 4096;

const EXTERNAL_ID = "customer-48151623";
/** The record of a typical request. */
const USUAL: Generation = {
  ...GENERATION,
  model: "anthropic/claude-sonnet-5",
  provider: "anthropic",
  keyId: "key_0123456789abcdefghijklmn",
  streamed: true,
  usage: { input: 1500, cacheRead: 4096, cacheWrite: 0, output: 640, reasoning: 128 },
  price: { input: 3_000_000, cached: 300_000, cacheWrite: 3_750_000, output: 15_000_000 },
  firstByteMs: 612,
  durationMs: 9480,
};

/** Pays for typical requests in sequence. Returns the stored bytes of each. */
async function bytesPerRequest(stub: Stub, count: number): Promise<number> {
  return runInDurableObject(stub, async (wallet: Wallet, state) => {
    const { sql } = state.storage;
    const before = sql.databaseSize;
    const { keyId } = USUAL;
    for (let i = 0; i < count; i++) {
      const request = {
        ...holdOf(9000, { externalId: EXTERNAL_ID, keyId }),
        most: micros(24_000),
      };
      valueOf(await wallet.hold(request));
      const cost = micros(15_328 + i);
      valueOf(await wallet.settle({ id: request.id, cost, generation: USUAL }));
    }
    return (sql.databaseSize - before) / count;
  });
}

it("a wallet stores at most 350 bytes per paid request", async () => {
  const { stub } = await newWallet(900_000_000);
  const bytes = await bytesPerRequest(stub, 3000);
  recordMeasured({ bytesPerRequest: Math.round(bytes) });
  expect(bytes).toBeLessThanOrEqual(350);
});

it("a wallet stores failed provider calls with their request, and nothing extra for other requests", async () => {
  const { stub } = await newWallet(900_000_000);
  const failed = [{ route: "anthropic:claude-sonnet-5", why: "overloaded" }];
  const kept = [];
  for (const generation of [USUAL, { ...USUAL, failed }]) {
    const { keyId } = USUAL;
    const request = { ...holdOf(9000, { externalId: EXTERNAL_ID, keyId }), most: micros(24_000) };
    valueOf(await stub.hold(request));
    valueOf(await stub.settle({ id: request.id, cost: micros(1), generation }));
    kept.push(valueOf(await stub.request(request.id)).generation);
  }
  expect(kept.map((one) => one?.failed)).toEqual([undefined, failed]);
  expect(kept.map((one) => one?.usage)).toEqual([USUAL.usage, USUAL.usage]);
  const details = await runInDurableObject(stub, (_: Wallet, { storage }) =>
    storage.sql.exec<{ detail: string }>("SELECT detail FROM requests ORDER BY id").toArray(),
  );
  expect(details.map(({ detail }) => (JSON.parse(detail) as unknown[]).length)).toEqual([8, 10]);
});

it("a wallet caches the numeric IDs of 2,000 names, and never assigns a second ID to a name", async () => {
  const { stub } = await newWallet(1);
  await runInDurableObject(stub, (_: Wallet, { storage: { sql } }) => {
    const known = new Map<string, number>();
    const names = Array.from({ length: 2001 }, (_unused, i) => `name ${i}`);
    const numbers = names.map((name) => getOrInsertName(sql, known, name));
    expect(known.size).toBe(2000);
    expect(known.has("name 0")).toBe(false);
    expect(new Set(numbers).size).toBe(2001);
    const started = new Map<string, number>();
    expect(names.map((name) => getOrInsertName(sql, started, name))).toEqual(numbers);
    expect(sql.exec("SELECT count(*) AS n FROM names").one()).toEqual({ n: 2001 });
  });
});

describe("a wallet with a small storage limit", () => {
  const bindings = env as { WALLET_BYTES_MAX?: string };
  const start = Date.UTC(2031, 4, 6, 12);

  beforeEach(() => setClock(start));
  afterEach(() => {
    delete bindings.WALLET_BYTES_MAX;
    setClock(null);
  });

  /** Returns the limit that leaves room for this number of bytes. */
  async function leaveRoom(stub: Stub, bytes: number): Promise<number> {
    const limit = (await sizeOf(stub)) + bytes;
    bindings.WALLET_BYTES_MAX = String(limit);
    return limit;
  }

  it("rolls up paid requests earlier if more than 70 % full, but keeps all data still in use", async () => {
    const { stub } = await newWallet(900_000_000);
    const idempotency = { name: "n", body: "b" };
    const [named, failed, lost, voided] = [
      holdOf(7, { idempotency }),
      holdOf(7, { idempotency: { name: "f", body: "b" } }),
      holdOf(5, { externalId: "u" }),
      holdOf(5),
    ];
    for (const request of [named, failed, lost, voided]) {
      valueOf(await stub.hold(request));
    }
    valueOf(await settle(stub, named.id, 7));
    for (const { id } of [failed, voided]) {
      valueOf(await stub.void(id));
    }
    await bytesPerRequest(stub, 5000);
    const usage = async () => stub.usage("2031-05-06", "2031-05-06", "user");
    const before = valueOf(await usage());
    setClock(start + 21 * 60_000);
    await runAlarm(stub);
    const young = holdOf(3);
    valueOf(await stub.hold(young));
    valueOf(await settle(stub, young.id, 3));
    const limit = Math.round(((await sizeOf(stub)) - 300_000) / 0.7);
    bindings.WALLET_BYTES_MAX = String(limit);
    // One batch per alarm, and the next alarm immediately.
    await runAlarm(stub);
    const rows = await rowsOf(stub, "SELECT count(*) AS n FROM requests");
    expect(rows[0]?.["n"]).toBeGreaterThanOrEqual(3000);
    await expect.poll(() => sizeOf(stub), { timeout: 30_000 }).toBeLessThanOrEqual(limit * 0.7);
    expect(valueOf(await stub.request(young.id)).generation?.costMicro).toBe(3);
    expect(failureOf(await stub.request(named.id))).toMatchObject({ kind: "not_found" });
    expect(failureOf(await stub.hold(holdOf(7, { idempotency })))).toMatchObject({
      kind: "idempotency_replay",
      id: named.id,
    });
    valueOf(await stub.hold(holdOf(7, { idempotency: { name: "f", body: "b" } })));
    expect(valueOf(await settle(stub, lost.id, 5))).toMatchObject({ charged: 5 });
    expect(valueOf(await settle(stub, voided.id, 5))).toEqual({ kind: "unknown" });
    expect(valueOf(await settle(stub, named.id, 7))).toEqual({ kind: "unknown" });
    const after = valueOf(await usage());
    expect(after.total.costMicro).toBe(before.total.costMicro + 3 + 5);
    const range = { fromMs: start - 1000, beforeMs: start + DAY_MS };
    const all = { models: null, providers: null, keyIds: null, externalIds: null, members: null };
    const report = await stub.usageOfRows({ ...range, ...all, by: ["model"], latency: false });
    expect(valueOf(report).completeFrom).toBeGreaterThan(start);
    const costs = await stub.costs({ ...range, by: "model", model: null, price: null });
    expect(valueOf(costs).completeFrom).toBeGreaterThan(start);
    await evictDurableObject(stub);
    expect(valueOf(await usage())).toEqual(after);
    expect(await differences(stub)).toEqual([]);
  });

  it("replaces old rows with sums in one transaction when full, and then continues", async () => {
    const { stub } = await newWallet(900_000_000);
    await bytesPerRequest(stub, 1000);
    await runAlarm(stub);
    setClock(start + 21 * 60_000);
    const limit = await leaveRoom(stub, 10_000);
    await runInDurableObject(stub, async (wallet: Wallet, state) => {
      const restore = refuseAbove(state.storage.sql, limit);
      for (let i = 0; i < 500; i++) {
        const request = holdOf(9000, { keyId: `key_${i}` });
        valueOf(await wallet.hold(request));
        valueOf(await wallet.settle({ id: request.id, cost: micros(1), generation: USUAL }));
        expect(state.storage.sql.databaseSize).toBeLessThanOrEqual(limit);
      }
      restore();
    });
    expect(await differences(stub)).toEqual([]);
  });

  it("replaces old rows with sums to revoke a key while full", async () => {
    const { stub } = await newWallet(900_000_000);
    await bytesPerRequest(stub, 1000);
    await runAlarm(stub);
    setClock(start + 21 * 60_000);
    const limit = await leaveRoom(stub, 10_000);
    const actor = { kind: "operator", id: "admin" } as const;
    await runInDurableObject(stub, async (wallet: Wallet, state) => {
      const restore = refuseAbove(state.storage.sql, limit);
      for (let i = 0; i < 200; i++) {
        await wallet.revokeKey(`hash_${i}`, start, { keyId: `key_${i}`, actor });
      }
      restore();
    });
    const [events] = await rowsOf(
      stub,
      "SELECT count(*) AS n FROM events WHERE type = 'key.revoked'",
    );
    const [revoked] = await rowsOf(stub, "SELECT count(*) AS n FROM keys");
    expect([events, revoked]).toEqual([{ n: 200 }, { n: 200 }]);
  });

  it("rejects new holds if no more rows can be rolled up, but still settles open holds", async () => {
    const { stub } = await newWallet(900_000_000);
    const open = holdOf(9000);
    valueOf(await stub.hold(open));
    bindings.WALLET_BYTES_MAX = String(await sizeOf(stub));
    await runAlarm(stub);
    expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
    expect(valueOf(await stub.hold(open))).toEqual({ granted: 9000 });
    expect(valueOf(await settle(stub, open.id, 9000))).toMatchObject({ charged: 9000 });
    delete bindings.WALLET_BYTES_MAX;
    valueOf(await stub.poke());
    valueOf(await stub.hold(holdOf(1)));
  });
});

function sizeOf(stub: Stub): Promise<number> {
  return runInDurableObject(stub, (_wallet: Wallet, state) => state.storage.sql.databaseSize);
}

/** Fails writes above a size but not deletions, as the platform does at an object's limit. */
function refuseAbove(sql: SqlStorage, limit: number): () => void {
  const exec = sql.exec.bind(sql);
  const limited: typeof sql.exec = (query, ...bindings) => {
    const isWrite = /^\s*(?:INSERT|UPDATE)/.test(query);
    if (isWrite && sql.databaseSize + PAGE_BYTES > limit) {
      throw new Error("database or disk is full: SQLITE_FULL");
    }
    return exec(query, ...bindings) as never;
  };
  Object.defineProperty(sql, "exec", { value: limited, configurable: true });
  return () => {
    delete (sql as { exec?: unknown }).exec;
  };
}
