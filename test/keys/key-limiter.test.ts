import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { mintKey } from "../../src/keys/api-key.ts";
import { findKeyByHash, revokeKey } from "../../src/keys/keys.store.ts";
import type { Admission } from "../../src/keys/limiter-contract.ts";
import type { KeyLimiter } from "../../src/index.ts";
import { now } from "../../src/lib/clock.ts";
import { keySecrets, makeKey, shiftClock, WatchedBook } from "./key-fixture.ts";

const MINUTE_MS = 60_000;
let book: WatchedBook;

beforeEach(() => {
  book = new WatchedBook();
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => {
  book.restore();
  shiftClock(null);
  vi.restoreAllMocks();
});

function limiterOf(hash: string): DurableObjectStub<KeyLimiter> {
  return env.KEY_LIMITER.getByName(hash);
}

async function burst(hash: string, count: number): Promise<number> {
  const limiter = limiterOf(hash);
  const answers = await Promise.all(Array.from({ length: count }, () => limiter.admit()));
  for (const answer of answers) if (!answer.ok) expect(kindOf(answer)).toBe("rate_limited");
  return answers.filter((answer) => answer.ok).length;
}

function kindOf(answer: Admission): string {
  return answer.ok ? "admitted" : answer.failure.kind;
}

/** What the limiter noted as its admissions, oldest first. */
function storedTimes(hash: string): Promise<number[]> {
  return runInDurableObject(limiterOf(hash), (_limiter: KeyLimiter, state) =>
    state.storage.sql
      .exec<{ at: number }>("SELECT at FROM admissions ORDER BY at")
      .toArray()
      .map((row) => row.at),
  );
}

function worstMinute(times: readonly number[]): number {
  return Math.max(
    0,
    ...times.map((start) => times.filter((at) => at >= start && at < start + MINUTE_MS).length),
  );
}

/** Waits for what the limiter does after its answers: until `seen` holds. */
function eventually(seen: () => Promise<void> | void): Promise<void> {
  return vi.waitFor(seen, { timeout: 5000, interval: 2 });
}

it("says who the key is and what is left of its minute", async () => {
  const { row } = await makeKey({ rpmLimit: 3, scope: "global" });
  expect(await limiterOf(row.hash).admit()).toEqual({
    ok: true,
    keyId: row.id,
    orgId: row.org_id,
    memberId: row.member_id,
    scope: "global",
    limit: 3,
    remaining: 2,
    resetMs: MINUTE_MS,
  });
});

it("an unknown key is refused and leaves nothing in storage", async () => {
  const { hash } = await mintKey({ home: "eu", scope: "regional", secrets: keySecrets() });
  expect(kindOf(await limiterOf(hash).admit())).toBe("invalid_api_key");
  const tables = await runInDurableObject(limiterOf(hash), (_limiter: KeyLimiter, state) =>
    state.storage.sql.exec("SELECT count(*) AS n FROM sqlite_master").one(),
  );
  expect(tables).toEqual({ n: 0 });
});

it("a key that is inserted after it was refused as unknown works at once", async () => {
  const { row } = await makeKey();
  await env.DB.prepare("DELETE FROM keys WHERE id = ?").bind(row.id).run();
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("invalid_api_key");
  await env.DB.prepare(
    `INSERT INTO keys (id, hash, org_id, member_id, name, prefix, scope, rpm_limit, created_at)
     VALUES (?, ?, ?, ?, 'k', 'p', 'regional', 60, 1)`,
  )
    .bind(row.id, row.hash, row.org_id, row.member_id)
    .run();
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("admitted");
});

it.each([
  ["a flood", [0, 1000, 30_000, 59_000, 60_500, 61_000, 119_000, 121_500]],
  ["bursts at the edges of minutes", [59_000, 60_200, 119_000, 120_200, 179_000, 180_200]],
  ["burst, idle, burst", [0, 15_000, 30_000, 45_000, 60_500, 75_000]],
])(
  "limit 60 under %s and an eviction before each: never over 60 in 60 s",
  async (_name, offsets) => {
    const { row } = await makeKey({ rpmLimit: 60 });
    const trace: number[] = [];
    let admitted = 0;
    for (const offset of offsets) {
      shiftClock(offset);
      // oxlint-disable-next-line no-await-in-loop -- the steps of a trace follow one another
      admitted += await burst(row.hash, 70);
      // oxlint-disable-next-line no-await-in-loop -- the steps of a trace follow one another
      trace.push(...(await storedTimes(row.hash)).slice(trace.length));
      // oxlint-disable-next-line no-await-in-loop -- the steps of a trace follow one another
      await evictDurableObject(limiterOf(row.hash));
    }
    expect(trace).toHaveLength(admitted);
    expect(worstMinute(trace)).toBe(60);
  },
);

it("evicted between every two requests it still admits exactly the limit", async () => {
  const { row } = await makeKey({ rpmLimit: 5 });
  const kinds: string[] = [];
  for (let i = 0; i < 8; i++) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other is the point
    kinds.push(kindOf(await limiterOf(row.hash).admit()));
    // oxlint-disable-next-line no-await-in-loop -- one after the other is the point
    await evictDurableObject(limiterOf(row.hash));
  }
  expect(kinds.filter((kind) => kind === "admitted")).toHaveLength(5);
});

it("limit 1000 with 64 concurrent callers admits exactly 1000, also after the ring has wrapped", async () => {
  const { row } = await makeKey({ rpmLimit: 1000 });
  const round = async (): Promise<number> => {
    const limiter = limiterOf(row.hash);
    const callers = Array.from({ length: 64 }, async () => {
      let admitted = 0;
      for (let i = 0; i < 17; i++) {
        // oxlint-disable-next-line no-await-in-loop -- each caller waits for its answer
        if ((await limiter.admit()).ok) admitted++;
      }
      return admitted;
    });
    return (await Promise.all(callers)).reduce((sum, admitted) => sum + admitted, 0);
  };
  expect(await round()).toBe(1000);
  await evictDurableObject(limiterOf(row.hash));
  expect(await burst(row.hash, 20)).toBe(0);
  shiftClock(MINUTE_MS + 20_000);
  expect(await round()).toBe(1000);
  expect(await storedTimes(row.hash)).toHaveLength(1000);
}, 30_000);

it("waiting exactly as long as it says admits one, and refused requests do not extend that", async () => {
  const { row } = await makeKey({ rpmLimit: 4 });
  expect(await burst(row.hash, 4)).toBe(4);
  shiftClock(20_000);
  const refused = await limiterOf(row.hash).admit();
  if (refused.ok || refused.failure.kind !== "rate_limited") throw new Error("not rate limited");
  expect(refused.failure).toMatchObject({ scope: "key", limit: 4 });
  const seconds = Math.ceil(refused.failure.retryAfterMs / 1000);
  expect(seconds).toBe(40);
  expect(await burst(row.hash, 50)).toBe(0);
  expect(await storedTimes(row.hash)).toHaveLength(4);
  shiftClock(20_000 + seconds * 1000);
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("admitted");
});

it("a clock that steps back 30 s admits no more, and forward again it goes on", async () => {
  const { row } = await makeKey({ rpmLimit: 10 });
  shiftClock(MINUTE_MS);
  expect(await burst(row.hash, 6)).toBe(6);
  shiftClock(MINUTE_MS - 30_000);
  expect(await burst(row.hash, 10)).toBe(4);
  await evictDurableObject(limiterOf(row.hash));
  expect(await burst(row.hash, 10)).toBe(0);
  shiftClock(2 * MINUTE_MS + 1000);
  expect(await burst(row.hash, 20)).toBe(10);
});

it("a clock that steps back over a minute counts the future as now, and says so", async () => {
  const alerts = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { row } = await makeKey({ rpmLimit: 10 });
  shiftClock(60 * MINUTE_MS);
  expect(await burst(row.hash, 10)).toBe(10);
  shiftClock(null);
  expect(await burst(row.hash, 10)).toBe(0);
  expect(alerts.mock.calls.flat().join()).toContain('"alert":"clock_stepped_back"');
  await evictDurableObject(limiterOf(row.hash));
  expect(await burst(row.hash, 10)).toBe(0);
  shiftClock(MINUTE_MS + 1000);
  expect(await burst(row.hash, 20)).toBe(10);
});

it("the book is asked once by all callers of a first use, and never again for an admission", async () => {
  const { row } = await makeKey({ rpmLimit: 100 });
  book.statements.length = 0;
  expect(await burst(row.hash, 50)).toBe(50);
  expect(book.statements.filter((sql) => sql.startsWith("SELECT"))).toHaveLength(1);
  await evictDurableObject(limiterOf(row.hash));
  expect(await burst(row.hash, 10)).toBe(10);
  expect(book.statements.filter((sql) => sql.startsWith("SELECT"))).toHaveLength(1);
});

it("one admission writes one row", async () => {
  const { row } = await makeKey();
  await limiterOf(row.hash).admit();
  const written = await runInDurableObject(
    limiterOf(row.hash),
    async (limiter: KeyLimiter, state) => {
      const exec = vi.spyOn(state.storage.sql, "exec");
      await limiter.admit();
      return exec.mock.results.map((result) => Number(Reflect.get(result.value, "rowsWritten")));
    },
  );
  expect(written).toEqual([1]);
});

it("a limit changed in the book holds within a minute of use, lowered or raised", async () => {
  const { row } = await makeKey({ rpmLimit: 5 });
  expect(await burst(row.hash, 10)).toBe(5);
  const setLimit = (limit: number): Promise<unknown> =>
    env.DB.prepare("UPDATE keys SET rpm_limit = ? WHERE id = ?").bind(limit, row.id).run();
  const limitIs = (limit: number): Promise<void> =>
    eventually(async () => {
      const answer = await limiterOf(row.hash).admit();
      if (answer.ok) expect(answer.limit).toBe(limit);
      else expect(answer.failure).toMatchObject({ limit });
    });
  await setLimit(8);
  shiftClock(MINUTE_MS + 1000);
  expect((await limiterOf(row.hash).admit()).ok).toBe(true);
  await limitIs(8);
  await burst(row.hash, 20);
  expect(worstMinute(await storedTimes(row.hash))).toBe(8);
  await setLimit(2);
  shiftClock(2 * MINUTE_MS + 5000);
  expect((await limiterOf(row.hash).admit()).ok).toBe(true);
  await limitIs(2);
  shiftClock(3 * MINUTE_MS + 9000);
  expect(await burst(row.hash, 10)).toBe(2);
});

it("last_used_at is written at most once a minute, across evictions, and never backwards", async () => {
  const { row } = await makeKey({ rpmLimit: 1000 });
  const uses = (): number =>
    book.statements.filter((sql) => sql.includes("max(coalesce(last_used_at")).length;
  const lastUsed = async (): Promise<number | null> =>
    (await findKeyByHash(env.DB, row.hash))?.last_used_at ?? null;
  const start = now(env);
  await burst(row.hash, 40);
  await eventually(async () => expect(await lastUsed()).toBeGreaterThanOrEqual(start));
  await evictDurableObject(limiterOf(row.hash));
  shiftClock(50_000);
  await burst(row.hash, 40);
  expect(uses()).toBe(1);
  shiftClock(MINUTE_MS + 1000);
  await burst(row.hash, 40);
  await eventually(async () => expect(await lastUsed()).toBeGreaterThan(start + MINUTE_MS));
  expect(uses()).toBe(2);
  const ahead = now(env) + 10 * MINUTE_MS;
  await env.DB.prepare("UPDATE keys SET last_used_at = ? WHERE id = ?").bind(ahead, row.id).run();
  shiftClock(2 * MINUTE_MS + 5000);
  await burst(row.hash, 1);
  await eventually(() => expect(uses()).toBe(3));
  expect(await lastUsed()).toBe(ahead);
});

it("the book's answer about a use never holds up an admission", async () => {
  const { row } = await makeKey();
  await limiterOf(row.hash).admit();
  shiftClock(MINUTE_MS + 1000);
  book.hold();
  expect(await burst(row.hash, 5)).toBe(5);
  book.open();
});

it("a revoked key is refused from the moment revoke answers, and after an eviction", async () => {
  const { row } = await makeKey();
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("admitted");
  expect(await limiterOf(row.hash).revoke(1000)).toBe(1000);
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("invalid_api_key");
  await evictDurableObject(limiterOf(row.hash));
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("invalid_api_key");
  expect(await limiterOf(row.hash).revoke(2000)).toBe(1000);
});

it("a key that was never read can be revoked, without asking the book", async () => {
  const { row } = await makeKey();
  book.statements.length = 0;
  await limiterOf(row.hash).revoke(now(env));
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("invalid_api_key");
  expect(book.statements).toEqual([]);
});

it("a tombstone beats a read of the book that began before it", async () => {
  const { row } = await makeKey();
  book.hold();
  book.statements.length = 0;
  const early = [limiterOf(row.hash).admit(), limiterOf(row.hash).admit()];
  await eventually(() => expect(book.statements).toHaveLength(1));
  await limiterOf(row.hash).revoke(now(env));
  book.open();
  expect((await Promise.all(early)).map(kindOf)).toEqual(["invalid_api_key", "invalid_api_key"]);
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("invalid_api_key");
});

it("a tombstone beats a refresh of the record that began before it", async () => {
  const { row } = await makeKey();
  book.hold();
  const first = limiterOf(row.hash).admit();
  await eventually(() => expect(book.statements.at(-1)).toMatch(/^SELECT/));
  book.open();
  book.hold();
  expect(kindOf(await first)).toBe("admitted");
  await eventually(() => expect(book.statements.at(-1)).toMatch(/^UPDATE/));
  await limiterOf(row.hash).revoke(now(env));
  book.open();
  await limiterOf(row.hash).admit();
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("invalid_api_key");
});

it("a revocation that only the book knows ends the key within a minute of use, and for good", async () => {
  const { row } = await makeKey();
  await limiterOf(row.hash).admit();
  await revokeKey(env.DB, { id: row.id, orgId: row.org_id, revokedAt: 5 });
  shiftClock(MINUTE_MS + 1000);
  await limiterOf(row.hash).admit();
  await eventually(async () =>
    expect(kindOf(await limiterOf(row.hash).admit())).toBe("invalid_api_key"),
  );
  await env.DB.prepare("UPDATE keys SET revoked_at = NULL WHERE id = ?").bind(row.id).run();
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("invalid_api_key");
});

it("a key that vanished from the book is unknown again within a minute of use", async () => {
  const { row } = await makeKey();
  await limiterOf(row.hash).admit();
  await env.DB.prepare("DELETE FROM keys WHERE id = ?").bind(row.id).run();
  shiftClock(MINUTE_MS + 1000);
  await limiterOf(row.hash).admit();
  await eventually(async () =>
    expect(kindOf(await limiterOf(row.hash).admit())).toBe("invalid_api_key"),
  );
});

it("with the book down a first use is 503, never 401, and heals with it", async () => {
  const { row } = await makeKey();
  book.broken = true;
  const answers = await Promise.all([limiterOf(row.hash).admit(), limiterOf(row.hash).admit()]);
  expect(answers.map(kindOf)).toEqual(["storage_unavailable", "storage_unavailable"]);
  book.broken = false;
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("admitted");
});

it("with the book down a known key goes on, also when its minute of use is due", async () => {
  const { row } = await makeKey({ rpmLimit: 10 });
  await limiterOf(row.hash).admit();
  book.broken = true;
  shiftClock(MINUTE_MS + 1000);
  expect(await burst(row.hash, 20)).toBe(10);
});

it("a limiter whose storage fails answers 503, and admits nothing that it could not store", async () => {
  const { row } = await makeKey({ rpmLimit: 2 });
  await limiterOf(row.hash).admit();
  await runInDurableObject(limiterOf(row.hash), (_limiter: KeyLimiter, state) => {
    state.storage.sql.exec("ALTER TABLE admissions RENAME TO lost");
  });
  expect(kindOf(await limiterOf(row.hash).admit())).toBe("storage_unavailable");
  await runInDurableObject(limiterOf(row.hash), (_limiter: KeyLimiter, state) => {
    state.storage.sql.exec("ALTER TABLE lost RENAME TO admissions");
  });
  expect(await burst(row.hash, 5)).toBe(1);
});

it("two keys of one organisation are limited apart", async () => {
  const [one, two] = [await makeKey({ rpmLimit: 3 }), await makeKey({ rpmLimit: 3 })];
  expect(await burst(one.row.hash, 5)).toBe(3);
  expect(await burst(two.row.hash, 5)).toBe(3);
});
