import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMPTY_KEY_TERMS } from "../../src/shared/key-terms.ts";
import { micros } from "../../src/shared/money.ts";
import type { HoldRequest } from "../../src/shared/contracts/wallet.ts";
import type { RouteCandidate } from "../../src/shared/policy.ts";
import { effortFor } from "../effort.ts";
import { evict, gatedKey } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { failureOf, holdOf, valueOf } from "./wallet-fixture.ts";

const PURCHASES = {
  type: "purchase.created",
  from: null,
  to: null,
  limit: 9,
  after: null,
} as const;
const MODELS = ["a/one", "a/two", "b/one", "b/two"];
const CHEAP = { least: 5, sure: 10, most: 20 };
const DEAR = { least: 50, sure: 60, most: 90 };

function candidate(
  model: string,
  { least, sure, most }: typeof CHEAP,
  tokens?: RouteCandidate["tokens"],
): RouteCandidate {
  const bounds = { least: micros(least), sure: micros(sure), most: micros(most) };
  const all = { sent: model, model, provider: "up", region: "eu", ...bounds };
  return tokens === undefined ? all : { ...all, tokens };
}

function requestOf({ booked }: GatedKey, candidates: readonly RouteCandidate[]): HoldRequest {
  const worst = (of: (one: RouteCandidate) => number) => micros(Math.max(...candidates.map(of)));
  return holdOf(0, {
    keyId: booked.keyId,
    least: worst(({ least }) => least),
    sure: worst(({ sure }) => sure),
    most: worst(({ most }) => most),
    candidates,
  });
}

type BudgetOf = { readonly amount: number; readonly models: readonly string[] | null };

async function limit({ stub }: GatedKey, budgets: readonly BudgetOf[]): Promise<void> {
  const rows = budgets.map((budget, at) => ({
    ...budget,
    id: `bud_${at}`,
    unit: "dollars" as const,
    window: "day",
    onExceeded: "reject" as const,
    alertAt: null,
  }));
  valueOf(await stub.patchSettings({ budgets: rows }));
}

async function requestHold(key: GatedKey, request: HoldRequest) {
  return valueOf(await key.stub.admitAndHold(key.hash, request)).held;
}

const counts = ({ models }: BudgetOf, model: string): boolean =>
  models === null || models.some((one) => one === model || one === `${model.slice(0, 1)}/*`);

/**
 * Returns the grant for some candidates, or null if they don't fit. Doesn't use the wallet's code.
 */
function grantFor(
  candidates: readonly RouteCandidate[],
  { balance, budgets }: { readonly balance: number; readonly budgets: readonly BudgetOf[] },
): number | null {
  const limits = budgets.filter((one) => candidates.some(({ model }) => counts(one, model)));
  const worst = (of: (one: RouteCandidate) => number) => Math.max(...candidates.map(of));
  const needed = worst(({ least, sure }) => (limits.length === 0 ? least : sure));
  const free = Math.min(balance, ...limits.map(({ amount }) => amount));
  if (needed > free || limits.some(({ amount }) => amount === 0)) return null;
  return Math.max(
    needed,
    Math.min(
      worst(({ most }) => most),
      free,
    ),
  );
}

/**
 * Returns the models to keep: the first, and each one that also fits. Empty if the first doesn't
 * fit.
 */
function keptOf(candidates: readonly RouteCandidate[], at: Parameters<typeof grantFor>[1]) {
  const of = (models: readonly string[]) => candidates.filter((one) => models.includes(one.model));
  const all = [...new Set(candidates.map(({ model }) => model))];
  if (grantFor(candidates, at) !== null) return all;
  const kept: string[] = [];
  for (const model of all) {
    if (grantFor(of([...kept, model]), at) !== null) kept.push(model);
    else if (kept.length === 0) return [];
  }
  return kept;
}

const amounts = fc
  .uniqueArray(fc.nat(60), { minLength: 3, maxLength: 3 })
  .map((three) => three.toSorted((a, b) => a - b))
  .map(([least = 0, sure = 0, most = 0]) => ({ least, sure, most }));
const budget = fc.record({
  amount: fc.nat(80),
  models: fc.constantFrom<readonly string[] | null>(null, ["a/*"], ["b/*"], ["a/two"], ["b/one"]),
});
const situation = fc.record({
  balance: fc.integer({ min: 1, max: 80 }),
  budgets: fc.uniqueArray(budget, { maxLength: 3, selector: ({ models }) => String(models) }),
  offers: fc
    .shuffledSubarray(MODELS, { minLength: 1 })
    .chain((models) =>
      fc.tuple(
        ...models.map((model) =>
          fc.array(amounts, { minLength: 1, maxLength: 2 }).map((routes) => ({ model, routes })),
        ),
      ),
    ),
});

describe("a hold for several models", () => {
  it("covers the first model and every affordable fallback, and stays unchanged for a retry", async () => {
    /** How often each number of models was kept. */
    const seen = new Map<number, number>();
    const property = fc.asyncProperty(situation, async ({ balance, budgets, offers }) => {
      const key = await gatedKey({ rpmLimit: 1000, balance });
      await limit(key, budgets);
      const candidates = offers.flatMap(({ model, routes }) =>
        routes.map((route) => candidate(model, route)),
      );
      const kept = keptOf(candidates, { balance, budgets });
      const request = requestOf(key, candidates);
      const answer = await requestHold(key, request);
      seen.set(offers.length - kept.length, kept.length);
      expect(answer.ok).toBe(kept.length > 0);
      if (!answer.ok) return;
      const keptCandidates = candidates.filter(({ model }) => kept.includes(model));
      const indexes = (isKept: boolean) =>
        candidates.flatMap(({ model }, at) => (kept.includes(model) === isKept ? [at] : []));
      const granted = grantFor(keptCandidates, { balance, budgets });
      expect(valueOf(answer)).toMatchObject({ granted, routes: indexes(true) });
      expect(valueOf(answer).uncovered ?? []).toEqual(indexes(false));
      await evict(key);
      const repeated = valueOf(await requestHold(key, request));
      expect(repeated.granted).toBe(granted);
      expect(indexes(true)).toEqual(expect.arrayContaining([...(repeated.routes ?? [])]));
      expect(valueOf(await key.stub.balance())).toMatchObject({ heldMicro: granted });
    });
    await fc.assert(property, { numRuns: effortFor(40, 2000) });
    expect(seen.size).toBeGreaterThan(2);
  });

  it("excludes a fallback model whose budget is used up, but fails if the first model's budget is used up", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 1000 });
    await limit(key, [{ amount: 0, models: ["b/*"] }]);
    const both = [candidate("a/one", CHEAP), candidate("b/one", CHEAP)];
    expect(valueOf(await requestHold(key, requestOf(key, both)))).toMatchObject({ routes: [0] });
    expect(failureOf(await requestHold(key, requestOf(key, both.toReversed())))).toMatchObject({
      kind: "budget_exceeded",
      budgetId: "bud_0",
    });
  });

  it("starts a top-up only if the balance doesn't cover the first model", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 30 });
    const terms = { belowMicro: micros(1), amountMicro: micros(20), mostPerMonthMicro: micros(99) };
    valueOf(await key.stub.patchSettings({ autoTopUp: terms }));
    const both = [candidate("a/one", CHEAP), candidate("b/one", DEAR)];
    const purchases = async () => {
      const { events } = valueOf<{ events: readonly unknown[] }>(await key.stub.events(PURCHASES));
      return events.length;
    };
    expect(valueOf(await requestHold(key, requestOf(key, both)))).toMatchObject({ uncovered: [1] });
    expect(await purchases()).toBe(0);
    failureOf(await requestHold(key, requestOf(key, both.toReversed())));
    expect(await purchases()).toBe(1);
  });

  it("reports the first model's amount if the balance covers no model", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 3 });
    const both = [candidate("a/one", CHEAP), candidate("b/one", DEAR)];
    expect(failureOf(await requestHold(key, requestOf(key, both)))).toMatchObject({
      kind: "balance_too_low",
      requiredMicro: 5,
    });
  });

  it("excludes a fallback that needs more tokens than the key may use in a minute", async () => {
    const key = await gatedKey({ rpmLimit: 1000, balance: 1000 });
    valueOf(await key.stub.admit(key.hash));
    const terms = { ...EMPTY_KEY_TERMS, tpmLimit: 100 };
    await env.KEY_REGISTER.getByName(key.hash).setTerms(terms);
    valueOf(await key.stub.setKeyTerms(key.hash, terms));
    const both = [
      candidate("a/one", CHEAP, { prompt: 10, least: 30, most: 60 }),
      candidate("b/one", CHEAP, { prompt: 10, least: 30, most: 400 }),
    ];
    const tokens = { prompt: 10, least: 30, most: 400 };
    const request = { ...requestOf(key, both), tokens };
    expect(valueOf(await requestHold(key, request))).toMatchObject({ routes: [0], uncovered: [1] });
  });
});
