import { evictDurableObject } from "cloudflare:test";
import { afterEach, expect, it } from "vitest";
import { readBudgets } from "../../src/shared/budgets.ts";
import type { BudgetOwner } from "../../src/shared/budgets.ts";
import { micros } from "../../src/shared/money.ts";
import { NO_TERMS } from "../../src/shared/key-terms.ts";
import { gatedKey, registerOf } from "./key-admissions-fixture.ts";
import { failureOf, GENERATION, holdOf, setClock, valueOf } from "./wallet-desk.ts";

const ORGANIZATION: BudgetOwner = { scope: "organization", subject: "" };
afterEach(() => setClock(null));

it("a budget counts quota holds and model calls together, even if the wallet's memory is lost", async () => {
  const key = await gatedKey({ balance: 1000 });
  const { hash, stub } = key;
  valueOf(await stub.admit(hash));
  const terms = { ...NO_TERMS, mayHold: true as const };
  await registerOf(key).setTerms(terms);
  valueOf(await stub.setKeyTerms(hash, terms));
  const budgets = readBudgets([{ limit_dollars: 0.0001, window: "60m" }]);
  valueOf(await stub.setBudgets({ owner: ORGANIZATION, budgets }));
  const placed = {
    pays: "quota",
    merchant: null,
    description: "a tool",
    expiresInS: 60,
  } as const;
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
