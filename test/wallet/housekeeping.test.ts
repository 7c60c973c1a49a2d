import { env } from "cloudflare:workers";
import { afterEach, expect, it } from "vitest";
import { countedD1 } from "../../scripts/workers/counters.ts";
import { noCounts } from "../../scripts/workers/counts.ts";
import type { Counts } from "../../scripts/workers/counts.ts";
import { micros } from "../../src/shared/money.ts";
import { changeKey } from "../../src/accounts/keys/keys.store.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { EMPTY_KEY_TERMS } from "../../src/shared/key-terms.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { siblingKey, evict, gatedKey, runInWallet, registerOf } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { GENERATION, holdOf, runAlarm, setClock, valueOf } from "./wallet-fixture.ts";

/** The activity of an organization, as far as it changes what its wallet publishes. */
type Active = {
  /** Keys used since the last publish. */
  readonly keys: number;
  readonly budgets: number;
  /** End users with spend since the last publish. */
  readonly endUsers: number;
  readonly requestsPerMinute: number;
};

/** A region's database statements and written rows. Rows include those of indexes. */
type DatabaseWork = { readonly statements: number; readonly rowsWritten: number };

const HOUR_MINUTES = 60;
/**
 * Minimum minutes between two publishes of a busy and of a quiet wallet. A quiet wallet has at most
 * `QUIET_REQUESTS` in between.
 */
const BUSY_MINUTES = 1.5;
const QUIET_MINUTES = 3;
const QUIET_REQUESTS = 64;

/** Returns the minimum minutes between two publishes. */
function publishMinutes({ requestsPerMinute }: Pick<Active, "requestsPerMinute">): number {
  return requestsPerMinute * QUIET_MINUTES <= QUIET_REQUESTS ? QUIET_MINUTES : BUSY_MINUTES;
}

/**
 * Returns the work of one publish. Always writes the balance and the day. Adds the last use of keys
 * and the spend of budgets and end users, if any.
 */
function publishWork({ keys, budgets, endUsers }: Active): DatabaseWork {
  const lists = [keys, budgets, endUsers].filter((rows) => rows > 0).length;
  return { statements: 2 + lists, rowsWritten: 2 + keys + budgets + endUsers };
}

/** Returns the work of an hour: the publishes, and one record that the organization is active. */
function hourlyWork(active: Active): DatabaseWork {
  const publishes = HOUR_MINUTES / publishMinutes(active);
  const { statements, rowsWritten } = publishWork(active);
  return { statements: 1 + publishes * statements, rowsWritten: 1 + publishes * rowsWritten };
}

function workPerSecond(organizations: number, active: Active): DatabaseWork {
  const { statements, rowsWritten } = hourlyWork(active);
  const each = organizations / 3600;
  return { statements: statements * each, rowsWritten: rowsWritten * each };
}

const START = Date.UTC(2031, 6, 8, 12);
const MINUTE_MS = 60_000;

afterEach(() => setClock(null));

/** Creates an organization whose keys and end users were all used and published. */
async function inUse({ keys, budgets, endUsers }: Active): Promise<GatedKey[]> {
  setClock(START);
  const first = await gatedKey({ rpmLimit: 1000, balance: 1_000_000 });
  const all = [first];
  while (all.length < keys) all.push(await siblingKey(first, 1000));
  for (const key of all) await pay(key, null);
  for (const key of all.slice(0, budgets)) {
    const terms = { ...EMPTY_KEY_TERMS, budgetMicro: micros(1_000_000) };
    await changeKey(
      env.DB,
      key.booked,
      { ...key.booked, terms },
      { now: START, actor: SYSTEM_ACTOR },
    );
    await registerOf(key).setTerms(terms);
    valueOf(await key.stub.setKeyTerms(key.hash, terms));
  }
  for (let user = 0; user < endUsers; user++) await pay(first, `user ${user}`);
  for (const key of all) await pay(key, null);
  valueOf(await first.stub.poke());
  return all;
}

async function pay({ hash, stub, booked }: GatedKey, externalId: string | null): Promise<void> {
  const request = holdOf(10, { externalId, keyId: booked.keyId });
  valueOf(valueOf(await stub.admitAndHold(hash, request)).held);
  const generation = { ...GENERATION, keyId: booked.keyId };
  valueOf(await stub.settle({ id: request.id, cost: micros(10), generation }));
}

/** Counts the database's work in this number of minutes while every key and end user is in use. */
async function countMinutes(minutes: number, active: Active, isAsleep: boolean): Promise<Counts> {
  const [first, ...others] = await inUse(active);
  if (first === undefined) throw new Error("an organization in use has a key");
  const counts = noCounts();
  const step = publishMinutes(active);
  for (let minute = step; minute <= minutes; minute += step) {
    // slightly slower than publishes can occur, so that the alarm finds one due
    setClock(START + minute * MINUTE_MS + minute * 1000);
    if (isAsleep) await evict(first);
    if (isAsleep || minute === step) {
      await runInWallet(first, (wallet) => countDatabaseCalls(wallet, counts));
    }
    for (const key of [first, ...others]) {
      for (let i = 0; i < active.requestsPerMinute * step; i += active.keys) await pay(key, null);
    }
    for (let user = 0; user < active.endUsers; user++) await pay(first, `user ${user}`);
    await runAlarm(first.stub);
    setClock(START + minute * MINUTE_MS + minute * 1000 + 6000);
    await runAlarm(first.stub); // at least 5 s after a change
  }
  return counts;
}

/** Counts the wallet's database calls until the object is evicted. */
function countDatabaseCalls(wallet: Wallet, counts: Counts): void {
  const lent = wallet as unknown as { env: Env };
  const value = Object.create(lent.env, { DB: { value: countedD1(lent.env.DB, counts) } });
  Object.defineProperty(wallet, "env", { value, configurable: true, writable: true });
}

const QUIET = { keys: 3, budgets: 0, endUsers: 0, requestsPerMinute: 1 };

it.each([
  ["in use", QUIET, false],
  ["inactive between requests", QUIET, true],
  ["with a budget and two end users", { ...QUIET, budgets: 1, endUsers: 2 }, true],
])(
  "a wallet causes the documented number of database queries per hour for an organization %s",
  async (_, active, asleep) => {
    const { d1Queries, d1RowsWritten } = await countMinutes(60, active, asleep);
    expect({ statements: d1Queries, rowsWritten: d1RowsWritten }).toEqual(hourlyWork(active));
  },
);

it("a wallet publishes at most every 90 seconds if busy, and at most every 180 seconds if quiet", async () => {
  const busy = { ...QUIET, requestsPerMinute: 70 };
  const { d1Queries, d1RowsWritten } = await countMinutes(6, busy, false);
  const { statements, rowsWritten } = publishWork(QUIET);
  const publishes = d1Queries / statements; // fewer if the requests were slow
  expect([1, 2, 3, 4]).toContain(publishes);
  expect(d1RowsWritten).toBe(publishes * rowsWritten);
  expect([publishMinutes(busy), publishMinutes(QUIET)]).toEqual([1.5, 3]);
});

it.each([
  [1, 400],
  [1000, 600],
])(
  "10,000 organizations use under 40 %% of a database at %i requests a minute, and write at most %i rows a second",
  (requestsPerMinute, rowsMax) => {
    const { statements, rowsWritten } = workPerSecond(10_000, { ...QUIET, requestsPerMinute });
    expect(statements).toBeLessThan(400);
    expect(rowsWritten).toBeLessThan(rowsMax);
  },
);
