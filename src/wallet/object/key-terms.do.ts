import { budgetSpent } from "../../lib/key-terms.ts";
import type { KeyStanding, KeyTerms } from "../../lib/key-terms.ts";
import { micros } from "../../lib/money.ts";
import { addKeySpend, budgetLeft, noKeySpend, TokenWindow } from "../rules/key-limits.ts";
import type { Budget } from "../rules/key-limits.ts";
import { heldOfKey } from "../rules/ledger.ts";
import { endOf, periodOfDay } from "../../lib/period.ts";
import { putBudget, selectKeyDays, updateBudget } from "../tables/key-rows.do.ts";
import { nextRevision } from "./memory.do.ts";
import type { Desk } from "./memory.do.ts";

/** A key's budget with what it has spent; null for a key that never had one. What is kept follows the terms. */
export function budgetOf(
  desk: Desk,
  keyId: string,
  { budgetMicro, budgetPeriod }: KeyTerms,
): Budget | null {
  const known = desk.memory.budgets.get(keyId);
  if (known === undefined) {
    return budgetMicro === null ? null : beginBudget(desk, { keyId, budgetMicro, budgetPeriod });
  }
  if (known.budgetMicro === budgetMicro && known.budgetPeriod === budgetPeriod) return known;
  const budget = { ...known, budgetMicro, budgetPeriod };
  updateBudget(desk.sql, budget);
  desk.memory.budgets.set(keyId, budget);
  return budget;
}

/**
 * A key's first budget: what it spent before counts too, as its usage tells. The row is as of the newest
 * checkpoint, as all are; memory is as of now.
 */
function beginBudget(desk: Desk, terms: Omit<Budget, "spend">): Budget {
  const { memory, sql } = desk;
  const { keyId } = terms;
  let spend = noKeySpend(desk.period);
  for (const { day, cost } of selectKeyDays(sql, keyId)) {
    spend = addKeySpend(spend, periodOfDay(day), micros(cost));
  }
  putBudget(sql, { ...terms, spend }, nextRevision(desk));
  for (const { dimension, name, day, cost } of memory.usage.values()) {
    if (dimension !== "key" || name !== keyId) continue;
    spend = addKeySpend(spend, periodOfDay(day), micros(cost));
    memory.unsavedKeys.add(keyId);
  }
  const budget = { ...terms, spend };
  memory.budgets.set(keyId, budget);
  memory.changed = true;
  return budget;
}

/** The tokens of a key's last minute. */
export function tokensOf({ memory }: Desk, keyId: string): TokenWindow {
  const known = memory.tokens.get(keyId);
  if (known !== undefined) return known;
  const window = new TokenWindow();
  memory.tokens.set(keyId, window);
  return window;
}

/** See `WalletCalls.keyStanding`. */
export function standingBy(
  desk: Desk,
  { keyId, terms }: { readonly keyId: string; readonly terms: KeyTerms },
): Omit<KeyStanding, "requests" | "madeAt" | "sessionsCut"> {
  const { memory, nowMs, period } = desk;
  const budget = budgetOf(desk, keyId, terms);
  const tokens =
    terms.tpmLimit === null ? null : tokensOf(desk, keyId).state(terms.tpmLimit, nowMs);
  if (budget === null || budget.budgetMicro === null) return { terms, tokens, budget: null };
  const { budgetPeriod } = budget;
  const heldMicro = heldOfKey(memory.books, budget, period);
  return {
    terms,
    tokens,
    budget: {
      spentMicro: budgetSpent(budget, period),
      heldMicro,
      leftMicro: micros(Math.max(0, budgetLeft(budget, period, heldMicro))),
      resetsAt: budgetPeriod === null ? null : endOf(period, budgetPeriod),
    },
  };
}
