import { evictDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { budgetsFromFields } from "../../src/shared/budgets.ts";
import type { Budget, BudgetOwner } from "../../src/shared/budgets.ts";
import { micros } from "../../src/shared/money.ts";
import { effortFor } from "../effort.ts";
import {
  credit,
  differences,
  failureOf,
  GENERATION,
  holdOf,
  deleteWalletStorage,
  newWallet,
  setClock,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const START = Date.UTC(2031, 4, 14, 23, 30);
const MINUTE = 60_000;
const TTL = 20 * MINUTE;
const ORGANIZATION: BudgetOwner = { scope: "organization", subject: "" };

afterEach(() => setClock(null));

const slot = fc.nat(20);
const model = fc.constantFrom("acme/one", "acme/two", "other/one");
const hold = fc.record({
  kind: fc.constant("hold" as const),
  amount: fc.integer({ min: 0, max: 60 }),
  model,
  isUser: fc.boolean(),
});
const settle = fc.record({
  kind: fc.constant("settle" as const),
  slot,
  cost: fc.integer({ min: 0, max: 80 }),
});
const ms = fc.oneof(fc.integer({ min: 1, max: 2 * MINUTE }), fc.constant(TTL + MINUTE));
const tick = fc.record({ kind: fc.constant("tick" as const), ms });
const disturbance = fc.record({ kind: fc.constantFrom("evict" as const, "publish" as const) });
const command = fc.oneof(
  { weight: 6, arbitrary: hold },
  { weight: 6, arbitrary: settle },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("void" as const), slot }) },
  { weight: 3, arbitrary: tick },
  { weight: 3, arbitrary: disturbance },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

const dollars = (max: number) => fc.integer({ min: 0, max }).map((amount) => amount / 1e6);
const entry = fc.oneof(
  fc.record({
    limit_dollars: dollars(200),
    window: fc.constantFrom("1m", "5m", "30m", "day", "month", "total"),
  }),
  fc.record({
    limit_requests: fc.integer({ min: 0, max: 6 }),
    window: fc.constantFrom("1m", "5m", "day", "total"),
  }),
  fc.record({
    limit_dollars: dollars(100),
    window: fc.constantFrom("5m", "day"),
    models: fc.constantFrom("acme/*", "other/one").map((one) => [one]),
  }),
);
const firstOf = <T>(list: readonly T[]): readonly T[] => list.slice(0, 1);
const budgets = fc
  .array(entry, { minLength: 1, maxLength: 4 })
  .map((list) =>
    [...Map.groupBy(budgetsFromFields(list), ({ id }) => id).values()].flatMap(firstOf),
  );
const script = fc.record({
  ofOrganization: budgets,
  ofUser: budgets,
  commands: fc.array(command, { minLength: 10, maxLength: 60 }),
});
type Script = typeof script extends fc.Arbitrary<infer T> ? T : never;

it("a budget's spend in a window never exceeds the budget's amount, even if the wallet's memory is lost", async () => {
  const numRuns = effortFor(20, 600);
  const result = await fc.check(fc.asyncProperty(script, runScript), {
    numRuns,
    seed: 20261127,
    endOnFailure: true,
  });
  expect(result.failed ? fc.defaultReportMessage(result) : "").toBe("");
});

type Charge = {
  readonly at: number;
  readonly day: string;
  readonly cost: number;
  readonly model: string;
  readonly isUser: boolean;
};
type Open = Omit<Charge, "at" | "cost"> & { readonly id: string };

/** The wallet, and an independent record of its charges. */
type Run = {
  readonly stub: Stub;
  readonly user: BudgetOwner;
  readonly open: Open[];
  readonly charges: Charge[];
  clock: number;
};

async function runScript({ ofOrganization, ofUser, commands }: Script): Promise<void> {
  setClock(START);
  const { stub } = await newWallet(100_000);
  const { endUser } = valueOf(await stub.putEndUser("ann", {}));
  const user: BudgetOwner = { scope: "end_user", subject: endUser.id };
  valueOf(await stub.setBudgets({ owner: ORGANIZATION, budgets: ofOrganization }));
  valueOf(await stub.setBudgets({ owner: user, budgets: ofUser }));
  const run: Run = { stub, user, open: [], charges: [], clock: START };
  for (const one of commands) {
    setClock(run.clock);
    await act(run, one);
    for (const budget of ofOrganization) mustFit(budget, run.charges);
    const ofAnn = run.charges.filter(({ isUser }) => isUser);
    for (const budget of ofUser) mustFit(budget, ofAnn);
  }
  expect(await differences(stub)).toEqual([]);
}

async function act(run: Run, one: Command): Promise<void> {
  const { stub } = run;
  switch (one.kind) {
    case "tick":
      run.clock += one.ms;
      return;
    case "publish":
      valueOf(await stub.poke());
      return;
    case "evict":
      return evict(run);
    case "hold":
      return tryHold(run, one);
    case "void":
    case "settle":
      return end(run, one);
  }
}

async function evict(run: Run): Promise<void> {
  const before = await statusOf(run);
  await evictDurableObject(run.stub);
  expect(await statusOf(run)).toEqual(before);
}

const statusOf = async ({ stub, user }: Run) => [
  valueOf(await stub.budgets(ORGANIZATION)),
  valueOf(await stub.budgets(user)),
];

type Hold = Extract<Command, { kind: "hold" }>;

async function tryHold({ stub, open, clock }: Run, one: Hold): Promise<void> {
  const { isUser } = one;
  const requested = { sent: one.model, id: one.model };
  const request = holdOf(one.amount, { model: requested, externalId: isUser ? "ann" : null });
  const answer = await stub.hold(request);
  expect([null, "budget_exceeded"]).toContain(answer.ok ? null : answer.failure.kind);
  if (!answer.ok) return;
  const day = new Date(clock).toISOString().slice(0, 10);
  open.push({ id: request.id, model: one.model, isUser, day });
}

type End = Extract<Command, { kind: "settle" | "void" }>;

async function end({ stub, open, charges, clock }: Run, one: End): Promise<void> {
  const [ended] = open.splice(one.slot % Math.max(1, open.length), 1);
  if (ended === undefined) return;
  if (one.kind === "void") {
    valueOf(await stub.void(ended.id));
    return;
  }
  const generation = { ...GENERATION, model: ended.model };
  const settlement = { id: ended.id, cost: micros(one.cost), generation };
  const answer = valueOf(await stub.settle(settlement));
  if (answer.kind === "settled") charges.push({ ...ended, at: clock, cost: answer.charged });
}

/** Checks every window that ends at a charge, and every calendar period. */
function mustFit({ unit, amount, models, window }: Budget, all: readonly Charge[]): void {
  if (unit !== "dollars") return;
  const charges = all.filter((one) => {
    const author = `${one.model.split("/")[0]}/*`;
    return models === null || models.includes(one.model) || models.includes(author);
  });
  const groups = window.endsWith("m") ? rolling(charges, window) : periods(charges, window);
  for (const group of groups) {
    expect(group.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(amount);
  }
}

function rolling(charges: readonly Charge[], window: string): readonly (readonly Charge[])[] {
  const length = Number(window.slice(0, -1)) * MINUTE;
  return charges.map(({ at }) => charges.filter((one) => one.at <= at && one.at > at - length));
}

function periods(charges: readonly Charge[], window: string): readonly (readonly Charge[])[] {
  const characters = { day: 10, month: 7 }[window] ?? 0;
  return [...Map.groupBy(charges, ({ day }) => day.slice(0, characters)).values()];
}

it("a late charge for an expired hold is absorbed if other requests have used up the day's budget", async () => {
  setClock(START);
  const { stub } = await newWallet(1000);
  const list = budgetsFromFields([{ limit_dollars: 0.0001, window: "day" }]);
  valueOf(await stub.setBudgets({ owner: ORGANIZATION, budgets: list }));
  const pay = async (amount: number): Promise<void> => {
    const { id } = await heldBy(stub, amount);
    const charge = valueOf(await stub.settle({ id, cost: micros(amount), generation: GENERATION }));
    expect(charge).toMatchObject({ charged: amount });
  };
  const { id } = await heldBy(stub, 60);
  setClock(START + TTL + MINUTE);
  await pay(60);
  setClock(START + 31 * MINUTE);
  await pay(10);
  const late = valueOf(await stub.settle({ id, cost: micros(60), generation: GENERATION }));
  expect(late).toMatchObject({ kind: "settled", charged: 0, shortfall: 60 });
});

async function heldBy(stub: Stub, amount: number) {
  const request = holdOf(amount);
  valueOf(await stub.hold(request));
  return request;
}

it("a budget of requests counts a request whose hold expired, but no released request", async () => {
  setClock(START);
  const { stub } = await newWallet(1000);
  const list = budgetsFromFields([{ limit_requests: 2, window: "total" }]);
  valueOf(await stub.setBudgets({ owner: ORGANIZATION, budgets: list }));
  const [first, lost, third] = [holdOf(1), holdOf(1), holdOf(1)];
  valueOf(await stub.hold(first));
  valueOf(await stub.hold(lost));
  expect(failureOf(await stub.hold(third))).toMatchObject({ unit: "requests", onlyHolds: false });
  valueOf(await stub.void(first.id));
  setClock(START + TTL + MINUTE);
  await credit(stub, 1);
  expect(valueOf(await stub.budgets(ORGANIZATION))).toMatchObject([{ used: 1, held: 0 }]);
  await evictDurableObject(stub);
  expect(valueOf(await stub.budgets(ORGANIZATION))).toMatchObject([{ used: 1, held: 0 }]);
});

it("a rebuilt wallet has the published budgets and their usage", async () => {
  setClock(START);
  const { stub, orgId } = await newWallet(1000);
  const list = budgetsFromFields([{ limit_dollars: 0.0001, window: "60m" }]);
  valueOf(await stub.setBudgets({ owner: ORGANIZATION, budgets: list }));
  const request = holdOf(40);
  valueOf(await stub.hold(request));
  valueOf(await stub.settle({ id: request.id, cost: micros(40), generation: GENERATION }));
  valueOf(await stub.poke());
  const before = valueOf(await stub.budgets(ORGANIZATION));
  expect(before).toMatchObject([{ used: 40 }]);
  await deleteWalletStorage(stub);
  valueOf(await stub.rebuild(orgId));
  expect(valueOf(await stub.budgets(ORGANIZATION))).toEqual(before);
});

it("a wallet keeps budget usage if the clock steps back", async () => {
  setClock(START);
  const { stub } = await newWallet(1000);
  const list = budgetsFromFields([{ limit_dollars: 0.0001, window: "5m" }]);
  valueOf(await stub.setBudgets({ owner: ORGANIZATION, budgets: list }));
  const request = holdOf(90);
  valueOf(await stub.hold(request));
  valueOf(await stub.settle({ id: request.id, cost: micros(90), generation: GENERATION }));
  setClock(START - 60 * MINUTE);
  expect(failureOf(await stub.hold(holdOf(20)))).toMatchObject({ left: 10 });
  setClock(START - 54 * MINUTE);
  valueOf(await stub.hold(holdOf(20)));
});

it("a rolling budget regains a charge's amount when the charge leaves the window, whatever charges left earlier", async () => {
  setClock(START);
  const { stub } = await newWallet(1000);
  const list = budgetsFromFields([{ limit_dollars: 0.0001, window: "1m" }]);
  valueOf(await stub.setBudgets({ owner: ORGANIZATION, budgets: list }));
  for (const [at, cost] of [
    [START, 60],
    [START + 40_000, 30],
  ] as const) {
    setClock(at);
    const { id } = await heldBy(stub, cost);
    valueOf(await stub.settle({ id, cost: micros(cost), generation: GENERATION }));
  }
  setClock(START + 90_000);
  const resetsAt = START + 101_000;
  expect(failureOf(await stub.hold(holdOf(80)))).toMatchObject({ left: 70, resetsAt });
  expect(valueOf(await stub.budgets(ORGANIZATION))).toMatchObject([{ used: 30, resetsAt }]);
  setClock(START + 10 * MINUTE);
  expect(valueOf(await stub.budgets(ORGANIZATION))).toMatchObject([{ used: 0, resetsAt: null }]);
});
