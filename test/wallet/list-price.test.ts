import { afterEach, beforeAll, expect, it } from "vitest";
import { ROWS_DELETED, dollarsPerMillion } from "../../scripts/list-price.ts";
import type { CompletionUse } from "../../scripts/list-price.ts";
import { countedD1 } from "../../scripts/workers/counters.ts";
import { noCounts } from "../../scripts/workers/counts.ts";
import type { Counts } from "../../scripts/workers/counts.ts";
import { budgetsFromFields } from "../../src/shared/budgets.ts";
import { micros } from "../../src/shared/money.ts";
import type { HoldRequest } from "../../src/shared/contracts/wallet.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { gatedKey, runInWallet } from "./key-admissions-fixture.ts";
import { GENERATION, holdOf, setClock, valueOf } from "./wallet-fixture.ts";

/** Requests for each publish, as in the document. */
const REQUESTS = 100;
const RETAINED_MS = 40 * 86_400_000;
const START = Date.UTC(2031, 6, 8, 12);
/** Tolerance for one alarm more or less. */
const ROWS_OFF = 0.05;

const FIGURES =
  import.meta.glob<string>("../../docs/figures.md", {
    query: "?raw",
    import: "default",
    eager: true,
  })["../../docs/figures.md"] ?? "";

afterEach(() => setClock(null));

type Life = {
  readonly objects: number;
  readonly deleted: number;
  readonly book: number;
  readonly read: number;
};

/** Counts the rows of one of `REQUESTS` requests until its own row is deleted. */
async function lifeOf({ more, budgets = [] }: Case): Promise<Life> {
  setClock(START);
  const key = await gatedKey({ rpmLimit: 1000, balance: 1_000_000 });
  valueOf(await key.stub.patchSettings({ budgets: budgetsFromFields(budgets) }));
  const [lived, gone] = await runInWallet(key, async (wallet, _sql, { storage }) => {
    const counts = noCounts();
    countDatabaseCalls(wallet, counts);
    const stop = countStored(storage, counts);
    await complete(wallet, key.hash, {}); // reads the key once and sets the alarm
    valueOf(await wallet.poke());
    const first = { ...counts };
    for (let i = 0; i < REQUESTS; i++) await complete(wallet, key.hash, more(i));
    valueOf(await wallet.poke());
    const second = { ...counts };
    setClock(START + RETAINED_MS);
    await wallet.alarm();
    stop();
    return [between(first, second), between(second, counts)];
  });
  const [deleted, each] = [gone.objectRowsWritten / REQUESTS, 1 / REQUESTS];
  return {
    objects: lived.objectRowsWritten * each + deleted,
    deleted,
    book: lived.d1RowsWritten * each,
    read: (lived.objectRowsRead + lived.d1RowsRead + gone.objectRowsRead) * each,
  };
}

async function complete(wallet: Wallet, hash: string, more: Partial<HoldRequest>): Promise<void> {
  const request = holdOf(10, more);
  valueOf(valueOf(await wallet.admitAndHold(hash, request)).held);
  valueOf(await wallet.settle({ id: request.id, cost: micros(10), generation: GENERATION }));
}

function between(before: Counts, after: Counts): Counts {
  const names = Object.keys(before) as (keyof Counts)[];
  return Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as Counts;
}

function countDatabaseCalls(wallet: Wallet, counts: Counts): void {
  const lent = wallet as unknown as { env: Env };
  const DB = countedD1(lent.env.DB, counts);
  lent.env = new Proxy(lent.env, {
    get: (env, name) => (name === "DB" ? DB : (Reflect.get(env, name) as unknown)),
  });
}

/**
 * Counts this object's rows and alarms until the returned function is called. Setting an alarm
 * counts as a row.
 */
function countStored(storage: DurableObjectStorage, counts: Counts): () => void {
  const { sql } = storage;
  const exec = sql.exec.bind(sql);
  const setAlarm = storage.setAlarm.bind(storage);
  const counting: typeof sql.exec = (query, ...bindings) => {
    const cursor = exec(query, ...bindings);
    // The caller has read its rows by then, because it reads them synchronously.
    queueMicrotask(() => {
      counts.objectRowsWritten += cursor.rowsWritten;
      counts.objectRowsRead += cursor.rowsRead;
    });
    return cursor as never;
  };
  const setting: typeof setAlarm = (at) => {
    counts.objectRowsWritten++;
    return setAlarm(at);
  };
  Object.defineProperty(sql, "exec", { value: counting, configurable: true });
  Object.defineProperty(storage, "setAlarm", { value: setting, configurable: true });
  return () => {
    delete (sql as { exec?: unknown }).exec;
    delete (storage as { setAlarm?: unknown }).setAlarm;
  };
}

/** Returns a measured figure from the document. */
function benched(name: string): number {
  const [, value = "NaN"] = new RegExp(`^${name} +([\\d.]+)`, "m").exec(FIGURES) ?? [];
  return Number(value);
}

type Case = {
  readonly more: (i: number) => Partial<HoldRequest>;
  readonly budgets?: Parameters<typeof budgetsFromFields>[0];
};
/** A budget of any 60 minutes, one per month, and one for a model's requests. */
const THREE_BUDGETS = [
  { limit_dollars: 100, window: "60m" },
  { limit_dollars: 1000, window: "month" },
  { limit_requests: 100_000, window: "day", models: ["acme/*"] },
];
const CASES: Readonly<Record<string, Case>> = {
  "without an end user": { more: () => ({}) },
  "with three budgets": { more: () => ({}), budgets: THREE_BUDGETS },
  "with one end user for all requests": { more: () => ({ externalId: "bob" }) },
  "with an `Idempotency-Key`": { more: (i) => ({ idempotency: { name: `n${i}`, body: "b" } }) },
  "with a new end user for each request": { more: (i) => ({ externalId: `user-${i}` }) },
};
const WITH_BUDGETS_MAX_DOLLARS = 5;

const lives = new Map<string, Life>();
beforeAll(async () => {
  for (const [name, one] of Object.entries(CASES)) lives.set(name, await lifeOf(one));
});

it.each(Object.keys(CASES))(
  "a completion %s writes the rows and costs the price stated in docs/figures.md",
  (name) => {
    const life = lives.get(name);
    const { objects = NaN, deleted = NaN, book = NaN, read = NaN } = life ?? {};
    const price = priceOf({ rowsWritten: objects + book, rowsRead: read });
    const row = FIGURES.split("\n").find((line) => line.startsWith(`| ${name} `)) ?? "";
    const documented = row
      .split("|")
      .slice(2, -1)
      .map((cell) => Number(cell.replace("$", "")));
    const counted = [objects, deleted, book, price];
    const off = counted.map((value, i) => Math.abs(value - (documented[i] ?? NaN)));
    expect(
      Math.max(...off),
      `${name}: ${counted.map((one) => one.toFixed(2)).join(" ")}`,
    ).toBeLessThan(ROWS_OFF);
  },
);

it(`a million completions with three budgets cost at most $${WITH_BUDGETS_MAX_DOLLARS}`, () => {
  const { objects = NaN, book = NaN, read = NaN } = lives.get("with three budgets") ?? {};
  const price = priceOf({ rowsWritten: objects + book, rowsRead: read });
  expect(price).toBeLessThanOrEqual(WITH_BUDGETS_MAX_DOLLARS);
});

it("the rows and price in docs/figures.md match the benchmark plus one row that is deleted later", () => {
  const { deleted = NaN, book = NaN, objects = NaN } = lives.get("without an end user") ?? {};
  const inObjects = benched("rows written in objects per completion");
  const rowsWritten = inObjects + benched("rows written in D1 per completion") + ROWS_DELETED;
  const price = priceOf({ rowsWritten, rowsRead: 0 });
  expect([deleted, rowsWritten, benched("list price per million completions")]).toEqual([
    expect.closeTo(ROWS_DELETED, 0),
    expect.closeTo(objects + book, 0),
    expect.closeTo(price, 1),
  ]);
});

/** Uses the measured CPU and calls of a completion. */
function priceOf(rows: Pick<CompletionUse, "rowsWritten" | "rowsRead">): number {
  return dollarsPerMillion({
    cpuMs: benched("CPU per JSON, Turnpike") / 1000,
    objectRequests: benched("object requests per completion, alarms included"),
    logLines: 0,
    ...rows,
  });
}
