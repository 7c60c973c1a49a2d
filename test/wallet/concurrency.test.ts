import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { changeKey } from "../../src/accounts/keys/keys.store.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { EMPTY_KEY_TERMS } from "../../src/shared/key-terms.ts";
import { micros } from "../../src/shared/money.ts";
import { effortFor } from "../effort.ts";
import { siblingKey, evict, gatedKey, runInWallet, registerOf } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import {
  countWrites,
  failureOf,
  GENERATION,
  holdOf,
  deleteWalletStorage,
  runAlarm,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";

const START = Date.UTC(2031, 4, 14, 12);
/** Holds expire after 20 minutes, or 35 from another region. Ticks are multiples of 3 minutes. */
const TTL_MS = { home: 20 * 60_000, peer: 35 * 60_000 };

afterEach(() => setClock(null));

const nth = fc.nat(20);
const command = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("hold" as const),
      isOther: fc.boolean(),
      from: fc.constantFrom("home" as const, "peer" as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("settle" as const, "void" as const), nth }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("retry" as const), nth }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("tick" as const),
      minutes: fc.constantFrom(3, 6, 21, 36),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("evict" as const, "publish" as const) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("limit" as const),
      most: fc.option(fc.integer({ min: 1, max: 5 })),
    }),
  },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

type Open = { readonly id: string; readonly key: GatedKey; readonly endsMs: number };
/** A wallet, and an independent record of its running requests. */
type Run = {
  readonly limited: GatedKey;
  readonly other: GatedKey;
  readonly ofKey: number;
  ofAll: number | null;
  open: readonly Open[];
  clockMs: number;
};

async function limitKey(key: GatedKey, maxConcurrent: number | null): Promise<void> {
  valueOf(await key.stub.admit(key.hash));
  const terms = { ...EMPTY_KEY_TERMS, maxConcurrent };
  const change = { ...key.booked, terms };
  await changeKey(env.DB, key.booked, change, { now: START, actor: SYSTEM_ACTOR });
  await registerOf(key).setTerms(terms);
  valueOf(await key.stub.setKeyTerms(key.hash, terms));
}

async function limitAll({ stub }: GatedKey, maxConcurrent: number | null): Promise<void> {
  valueOf(await stub.patchSettings({ maxConcurrent }));
}

const requestOf = ({ booked }: GatedKey, isPeer = false) =>
  holdOf(1, { keyId: booked.keyId, peer: isPeer });

async function holdBy(key: GatedKey, request = requestOf(key)) {
  return valueOf(await key.stub.admitAndHold(key.hash, request)).held;
}

async function tryHold(run: Run, { isOther, from }: Extract<Command, { kind: "hold" }>) {
  const key = isOther ? run.other : run.limited;
  const request = requestOf(key, from === "peer");
  const ofKey = run.open.filter((one) => one.key === key).length;
  const isFullKey = !isOther && ofKey >= run.ofKey;
  const isFull = run.open.length >= (run.ofAll ?? Infinity);
  const full = isFullKey
    ? { scope: "key", limit: run.ofKey }
    : { scope: "organization", limit: run.ofAll };
  const expected = isFullKey || isFull ? { kind: "concurrency_limited", ...full } : null;
  expect(failureOf(await holdBy(key, request))).toEqual(expected);
  if (expected !== null) return;
  run.open = [...run.open, { id: request.id, key, endsMs: run.clockMs + TTL_MS[from] }];
}

async function end(run: Run, one: Extract<Command, { kind: "settle" | "void" }>): Promise<void> {
  const ended = run.open[one.nth % Math.max(1, run.open.length)];
  if (ended === undefined) return;
  const { stub } = run.limited;
  if (one.kind === "void") valueOf(await stub.void(ended.id));
  else valueOf(await settle(stub, ended.id, 1));
  run.open = run.open.filter(({ id }) => id !== ended.id);
}

async function retry({ open }: Run, { nth: at }: { readonly nth: number }): Promise<void> {
  const known = open[at % Math.max(1, open.length)];
  if (known === undefined) return;
  const answer = await holdBy(known.key, { ...requestOf(known.key), id: known.id });
  if (!answer.ok) expect(answer.failure.kind).toBe("overloaded"); // its ID is too old
}

async function act(run: Run, one: Command): Promise<void> {
  const { limited } = run;
  switch (one.kind) {
    case "hold":
      return tryHold(run, one);
    case "settle":
    case "void":
      return end(run, one);
    case "retry":
      return retry(run, one);
    case "evict":
      valueOf(await limited.stub.balance()); // only an object in memory can be evicted
      return evict(limited);
    case "publish":
      return void valueOf(await limited.stub.poke());
    case "limit":
      run.ofAll = one.most;
      return limitAll(limited, one.most);
    case "tick":
      run.clockMs += one.minutes * 60_000;
      setClock(run.clockMs);
      run.open = run.open.filter(({ endsMs }) => endsMs > run.clockMs);
  }
}

async function runScript(commands: readonly Command[]): Promise<void> {
  setClock(START);
  const limited = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
  const other = await siblingKey(limited, 1000);
  await limitKey(limited, 2);
  await limitAll(limited, 3);
  const run: Run = { limited, other, ofKey: 2, ofAll: 3, open: [], clockMs: START };
  for (const one of commands) await act(run, one);
}

describe("the limit max_concurrent", () => {
  it("counts exactly the running requests of each key and organization, despite retries, expiry and evictions", async () => {
    const scripts = fc.array(command, { minLength: 10, maxLength: 40 });
    const result = await fc.check(fc.asyncProperty(scripts, runScript), {
      numRuns: effortFor(10, 200),
      seed: 20261127,
      endOnFailure: true,
    });
    expect(result.failed ? fc.defaultReportMessage(result) : "").toBe("");
  });

  it("allows exactly 5 of 50 concurrent requests", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    await limitAll(key, 5);
    const answers = await Promise.all(Array.from({ length: 50 }, () => holdBy(key)));
    expect(answers.filter((one) => one.ok)).toHaveLength(5);
  });

  it("adds no database row to a request", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    await limitKey(key, null);
    const rows = (): Promise<number> =>
      runInWallet(key, (wallet, _sql, { storage }) =>
        countWrites(storage, async () => {
          const request = requestOf(key);
          valueOf(valueOf(await wallet.admitAndHold(key.hash, request)).held);
          const settlement = { id: request.id, cost: micros(1), generation: GENERATION };
          valueOf(await wallet.settle(settlement));
        }),
      );
    await rows(); // the key's first request writes its names
    const without = await rows();
    await limitKey(key, 5);
    await limitAll(key, 5);
    expect(await rows()).toBe(without);
  });

  it("ignores holds placed by POST /v1/holds", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    valueOf(await key.stub.admit(key.hash));
    await key.stub.setKeyTerms(key.hash, { ...EMPTY_KEY_TERMS, mayHold: true });
    await limitAll(key, 1);
    const placed = { pays: "quota", merchant: null, description: "x", expiresInS: 60 } as const;
    const place = async () =>
      key.stub.placeHold({ ...requestOf(key), placed }, { keyHash: key.hash }, false);
    valueOf(await place());
    valueOf(await holdBy(key));
    expect(failureOf(await holdBy(key))).toMatchObject({ kind: "concurrency_limited" });
    valueOf(await place());
  });

  it("remains enforced after the wallet is lost and rebuilt", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
    await limitAll(key, 1);
    valueOf(await key.stub.poke());
    await deleteWalletStorage(key.stub);
    valueOf(await key.stub.rebuild(key.booked.orgId));
    expect(valueOf(await key.stub.readSettings())).toMatchObject({ maxConcurrent: 1 });
    await limitAll(key, null);
    valueOf(await key.stub.poke());
    await deleteWalletStorage(key.stub);
    valueOf(await key.stub.rebuild(key.booked.orgId));
    expect(valueOf(await key.stub.readSettings())).toMatchObject({ maxConcurrent: null });
    await runAlarm(key.stub);
  });
});
