import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { effortFor } from "../effort.ts";
import { budgetsFromFields } from "../../src/shared/budgets.ts";
import type { BudgetOwner } from "../../src/shared/budgets.ts";
import { micros } from "../../src/shared/money.ts";
import { EMPTY_KEY_TERMS } from "../../src/shared/key-terms.ts";
import { gatedKey, registerOf } from "./key-admissions-fixture.ts";
import { failureOf, GENERATION, holdOf, setClock, valueOf } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const ORGANIZATION: BudgetOwner = { scope: "organization", subject: "" };
afterEach(() => setClock(null));

const LIMIT = 100;
const placed = {
  pays: "quota",
  merchant: null,
  description: "a tool",
  expiresInS: 60,
} as const;

/**
 * Creates a wallet whose organization has a budget of 100 micro-credits, and a key that can place
 * holds.
 */
async function limitedKey() {
  const key = await gatedKey({ balance: 100_000 });
  const { hash, stub } = key;
  valueOf(await stub.admit(hash));
  const terms = { ...EMPTY_KEY_TERMS, mayHold: true as const };
  await registerOf(key).setTerms(terms);
  valueOf(await stub.setKeyTerms(hash, terms));
  const row = [key.booked.keyId, key.booked.orgId, Date.now(), '{"may_hold":true}'];
  await env.DB.prepare(
    "INSERT INTO key_terms (key_id, org_id, changed_at, more) VALUES (?, ?, ?, ?)",
  )
    .bind(...row)
    .run(); // a publish compares the limits with the database
  const budgets = budgetsFromFields([{ limit_dollars: LIMIT / 1_000_000, window: "60m" }]);
  valueOf(await stub.setBudgets({ owner: ORGANIZATION, budgets }));
  const hold = (amount: number) =>
    holdOf(amount, {
      keyId: key.booked.keyId,
      placed,
      model: null,
      tokens: { prompt: 0, least: 0, most: 0 },
    });
  return { hash, stub, hold };
}

const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("place" as const, "call" as const),
      amount: fc.integer({ min: 1, max: 60 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("settle" as const, "release" as const),
      which: fc.nat(9),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("evict" as const, "poke" as const) }) },
);

type Held = { readonly id: string; readonly amount: number; readonly isQuota: boolean };

function sumOf(holds: readonly Held[]): number {
  return holds.reduce((sum, { amount }) => sum + amount, 0);
}

/** Ends a hold with a part of its amount or without a charge. Returns the cost. */
async function end(
  stub: Stub,
  { id, amount }: Held,
  { kind, part }: { readonly kind: "settle" | "release"; readonly part: number },
): Promise<number> {
  if (kind === "release") valueOf(await stub.void(id));
  const cost = kind === "settle" ? Math.floor(part * amount) : 0;
  const settlement = { id, cost: micros(cost), generation: GENERATION };
  if (kind === "settle") valueOf(await stub.settle(settlement));
  return cost;
}

it("quota holds and model calls together never exceed a budget, whatever their order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(command, { minLength: 10, maxLength: 40, size: "max" }),
      async (all) => {
        const { hash, stub, hold } = await limitedKey();
        const open: Held[] = [];
        const outcomes: [fits: boolean, answer: unknown][] = [];
        let [used, charged] = [0, 0];
        for (const one of all) {
          if ("amount" in one) {
            const isQuota = one.kind === "place";
            const request = isQuota ? hold(one.amount) : holdOf(one.amount);
            const fits = used + sumOf(open) + one.amount <= LIMIT;
            const answer = await (isQuota ? stub.hold(request, hash) : stub.hold(request));
            if (answer.ok) open.push({ id: request.id, amount: one.amount, isQuota });
            outcomes.push([fits, answer.ok ? true : answer.failure.kind]);
          } else if ("which" in one) {
            const [hit] = open.splice(one.which, 1);
            if (hit === undefined) continue;
            const cost = await end(stub, hit, one);
            used += cost;
            charged += hit.isQuota ? 0 : cost;
          } else if (one.kind === "evict") await evictDurableObject(stub);
          else valueOf(await stub.poke());
          const held = sumOf(open);
          expect(valueOf(await stub.budgets(ORGANIZATION))).toMatchObject([{ used, held }]);
        }
        expect(outcomes).toEqual(outcomes.map(([fits]) => [fits, fits || "budget_exceeded"]));
        expect(valueOf(await stub.balance()).creditsMicro).toBe(100_000 - charged);
      },
    ),
    { numRuns: effortFor(10, 200), endOnFailure: true },
  );
});

it("a budget counts quota holds and model calls together, even if the wallet's memory is lost", async () => {
  const key = await gatedKey({ balance: 1000 });
  const { hash, stub } = key;
  valueOf(await stub.admit(hash));
  const terms = { ...EMPTY_KEY_TERMS, mayHold: true as const };
  await registerOf(key).setTerms(terms);
  valueOf(await stub.setKeyTerms(hash, terms));
  const budgets = budgetsFromFields([{ limit_dollars: 0.0001, window: "60m" }]);
  valueOf(await stub.setBudgets({ owner: ORGANIZATION, budgets }));
  const request = holdOf(40, {
    keyId: key.booked.keyId,
    placed,
    model: null,
    tokens: { prompt: 0, least: 0, most: 0 },
  });
  valueOf(await stub.hold(request, hash));
  expect(failureOf(await stub.hold(holdOf(61)))).toMatchObject({ held: 40, left: 100 });
  await evictDurableObject(stub);
  expect(valueOf(await stub.budgets(ORGANIZATION))).toMatchObject([{ used: 0, held: 40 }]);
  valueOf(await stub.settle({ id: request.id, cost: micros(30), generation: GENERATION }));
  expect(valueOf(await stub.balance()).creditsMicro).toBe(1000);
  await evictDurableObject(stub);
  expect(valueOf(await stub.budgets(ORGANIZATION))).toMatchObject([{ used: 30, held: 0 }]);
  expect(failureOf(await stub.hold(holdOf(71)))).toMatchObject({ left: 70 });
});
