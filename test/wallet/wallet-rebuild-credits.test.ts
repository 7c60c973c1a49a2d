import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { micros } from "../../src/shared/money.ts";
import { effortFor } from "../effort.ts";
import { FaultyDatabase } from "./faulty-database.ts";
import type { Fault } from "./faulty-database.ts";
import {
  credit,
  differences,
  failureOf,
  deleteWalletStorage,
  newWallet,
  pay,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const BASE = 1000;
/** The only possible amounts by reference, with texts that SQL and JSON could interpret. */
const AMOUNTS = new Map([
  ["invoice 1", 100],
  ["invoice\u00001", 20],
  ["invoice\u00002", 3],
  ['"it\'s" \\ ❤ \n', 4000],
  ["rebuild:1", -50],
  ["\u{1f980}".repeat(100), 60_000],
]);
const SUM = BASE + [...AMOUNTS.values()].reduce((sum, amount) => sum + amount, 0);

type Step =
  | { kind: "credit"; reference: string }
  | { kind: "publish"; fault: Fault }
  | { kind: "evict" | "lose" | "remember" | "restore" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      ...[...AMOUNTS.keys()].map((reference) => ({ kind: "credit" as const, reference })),
    ),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      fault: fc.constantFrom<Fault[]>("none", "none", "throw", "throw-after"),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "lose" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("evict" as const, "remember" as const, "restore" as const),
    }),
  },
);

it("a credit counts once per reference, even if the wallet is lost and rebuilt and D1 fails", async () => {
  const result = await fc.check(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 24, size: "max" }), runSteps),
    { numRuns: effortFor(8, 60), seed: 5, endOnFailure: true },
  );
  expect(result.failed ? fc.defaultReportMessage(result) : "").toBe("");
});

async function runSteps(steps: readonly Step[]): Promise<void> {
  const { stub, orgId } = await newWallet(BASE);
  const database = new FaultyDatabase(orgId);
  valueOf(await stub.poke());
  await database.remember();
  await database.install(stub);
  for (const one of steps) await take(one, { stub, orgId, database });
  for (const [reference, amount] of AMOUNTS) {
    valueOf(await credit(stub, amount, reference));
  }
  expect(valueOf(await stub.balance()).creditsMicro).toBe(SUM);
  database.fault = "none";
  valueOf(await stub.poke());
  expect(await differences(stub)).toEqual([]);
}

async function take(
  one: Step,
  { stub, orgId, database }: { stub: Stub; orgId: string; database: FaultyDatabase },
): Promise<void> {
  if (one.kind === "credit") {
    valueOf(await credit(stub, AMOUNTS.get(one.reference) ?? 0, one.reference));
  }
  if (one.kind === "publish") {
    database.fault = one.fault;
    valueOf(await stub.poke());
  }
  if (one.kind === "remember") await database.remember();
  if (one.kind === "restore") await database.restore();
  if (one.kind === "evict") await evictDurableObject(stub);
  if (one.kind === "lose") {
    await deleteWalletStorage(stub);
    valueOf(await stub.rebuild(orgId));
  }
  if (one.kind === "evict" || one.kind === "lose") await database.install(stub);
}

const MANY = 3200;
const countOf = (orgId: string): Promise<number | null> =>
  env.DB.prepare("SELECT count(*) AS n FROM credits WHERE org_id = ?").bind(orgId).first("n");

/**
 * Creates a wallet with `MANY` credits of 1, from a release that didn't store them in the database.
 */
async function withMany(): Promise<{ readonly stub: Stub; readonly orgId: string }> {
  const { stub, orgId } = await newWallet();
  await runInDurableObject(stub, (_wallet: Wallet, { storage }) => {
    storage.sql.exec(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MANY})
      INSERT INTO entries (seq, kind, amount, balance, created_at, reference)
      SELECT i, 'credit', 1, i, i, 'invoice ' || i FROM n`,
    );
    storage.sql.exec(
      "INSERT INTO checkpoints SELECT ?1, ?1, clock, newest, floor_id FROM checkpoints",
      MANY,
    );
    storage.sql.exec("UPDATE wallet SET revision = 1, acknowledged = 1");
  });
  await evictDurableObject(stub);
  const { epoch } = await stub.create(orgId);
  await env.DB.prepare("INSERT INTO balances VALUES (?, ?, 1, ?, 0)")
    .bind(orgId, epoch, MANY)
    .run();
  return { stub, orgId };
}

it(`a wallet publishes ${MANY} credits from an older release, which a rebuilt wallet adopts`, async () => {
  const { stub, orgId } = await withMany();
  valueOf(await stub.poke());
  expect(await countOf(orgId)).toBe(MANY);
  await deleteWalletStorage(stub);
  valueOf(await stub.rebuild(orgId));
  for (const i of [1, MANY / 2, MANY]) {
    const again = valueOf(await credit(stub, 1, `invoice ${i}`));
    expect(again).toEqual({ creditsMicro: i, heldMicro: 0, openHolds: 0 });
  }
  expect(failureOf(await credit(stub, 2, "invoice 7"))).toMatchObject({ kind: "conflict" });
  expect(valueOf(await stub.balance()).creditsMicro).toBe(MANY);
  const head = "DELETE FROM balances WHERE org_id = ?";
  const rows = "DELETE FROM credits WHERE org_id = ?";
  valueOf(await stub.poke());
  await env.DB.batch([head, rows].map((sql) => env.DB.prepare(sql).bind(orgId)));
  await pay(stub, 1);
  valueOf(await stub.poke());
  expect(await countOf(orgId)).toBe(MANY + 1); // and the row of the rebuild
  expect(await differences(stub)).toEqual([]);
});

type Batch = (statements: D1PreparedStatement[]) => Promise<unknown>;
const batch: Batch = (statements) => env.DB.batch(statements);
const prepare = (sql: string): D1PreparedStatement => env.DB.prepare(sql);

/** Replaces the wallet's database until it is evicted. */
function throughDatabase(
  stub: Stub,
  bookOf: (wallet: Wallet) => { prepare: typeof prepare; batch: Batch },
): Promise<void> {
  return runInDurableObject(stub, (wallet: Wallet) => {
    const own = (wallet as unknown as { env: Env }).env;
    const value = Object.create(own, { DB: { value: bookOf(wallet) } });
    Object.defineProperty(wallet, "env", { value, configurable: true });
  });
}

it("a rebuilt wallet lacks a credit made during the last publish, but accepts this credit again", async () => {
  const { stub, orgId } = await withMany();
  await throughDatabase(stub, (wallet) => ({
    prepare,
    async batch(statements) {
      const results = await batch(statements);
      valueOf(await wallet.credit({ amountMicro: micros(1), reference: "late" }));
      return results;
    },
  }));
  valueOf(await stub.poke());
  expect(await countOf(orgId)).toBe(MANY);
  await deleteWalletStorage(stub);
  expect(valueOf(await stub.rebuild(orgId)).creditsMicro).toBe(MANY);
  expect(valueOf(await credit(stub, 1, "late")).creditsMicro).toBe(MANY + 1);
});

it("a wallet publishes credits only if there are new ones", async () => {
  const { stub } = await newWallet(BASE);
  const sent: string[] = [];
  await throughDatabase(stub, () => ({
    prepare(sql) {
      sent.push(sql);
      return prepare(sql);
    },
    batch,
  }));
  const ofCredits = () => sent.splice(0).filter((sql) => sql.includes("INTO credits")).length;
  valueOf(await stub.poke());
  expect(ofCredits()).toBe(1);
  await pay(stub, 5);
  valueOf(await stub.poke());
  expect(sent.some((sql) => sql.includes("INTO balances"))).toBe(true);
  expect(ofCredits()).toBe(0);
  await credit(stub, 5);
  valueOf(await stub.poke());
  expect(ofCredits()).toBe(1);
});
