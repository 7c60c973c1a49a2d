import type { Budget, BudgetStatus, Key } from "../api/types.ts";
import { splitNames } from "./names.ts";
import { countText, formatBalance, dollarsToMicros, formatCharge } from "./money.ts";

export type ListedBudget = Budget | BudgetStatus;
export type BudgetUnit = "dollars" | "tokens" | "requests";

export function budgetWindowText(window: string): string {
  if (window === "total") return "in total";
  if (!window.endsWith("m")) return `per ${window}`;
  return window === "1m" ? "in any minute" : `in any ${window.slice(0, -1)} minutes`;
}

export function budgetLimitOf(budget: Partial<Budget>): readonly [unit: BudgetUnit, limit: number] {
  const { limit_dollars: dollars, limit_tokens: tokens, limit_requests: requests } = budget;
  if (tokens !== undefined) return ["tokens", tokens];
  return requests === undefined ? ["dollars", dollars ?? 0] : ["requests", requests];
}

export function formatAmount(
  unit: BudgetUnit,
  amount: number,
  money: typeof formatBalance = formatCharge,
): string {
  return unit === "dollars" ? money(dollarsToMicros(amount)) : countText(amount, unit.slice(0, -1));
}

export function budgetText(budget: ListedBudget): string {
  const [unit, limit] = budgetLimitOf(budget);
  const limitText = `${formatAmount(unit, limit, formatBalance)} ${budgetWindowText(budget.window)}`;
  if (!("usage" in budget)) return limitText;
  const held = budget.held > 0 ? `, ${formatAmount(unit, budget.held)} on hold` : "";
  return `${formatAmount(unit, budget.usage)} of ${limitText}${held}`;
}

type TypedBudget = {
  readonly unit: BudgetUnit;
  readonly amount: string;
  readonly window: string;
  readonly models: string;
  readonly alert: string;
};

export function budgetFormValues(budget: ListedBudget | undefined): TypedBudget {
  const [unit, limit] = budgetLimitOf(budget ?? {});
  const { window = "month", models = null, alert_at: alert = 0.8 } = budget ?? {};
  return {
    unit,
    amount: budget === undefined ? "" : String(limit),
    window,
    models: models?.join(", ") ?? "",
    alert: alert === null ? "" : String(Number((100 * alert).toFixed(6))),
  };
}

function entryOf({ unit, amount, window, models, alert }: TypedBudget) {
  const chosen = splitNames(models);
  return {
    [`limit_${unit}`]: Number(amount.replaceAll(/[$,\s]/g, "")),
    window,
    models: chosen.length === 0 ? null : chosen,
    alert_at: alert.trim() === "" ? null : Number((Number(alert) / 100).toFixed(8)),
  };
}

/**
 * Returns the list with `budget` replaced by `entered`. Adds `entered` if `budget` is undefined.
 * Removes `budget` if `entered` is null.
 */
export function replaceBudget(
  budgets: readonly ListedBudget[],
  budget: ListedBudget | undefined,
  entered: TypedBudget | null,
) {
  const others = budgets
    .filter(({ id }) => id !== budget?.id)
    .map(({ window, models, on_exceeded, alert_at, ...one }) => {
      const [unit, limit] = budgetLimitOf(one);
      return { [`limit_${unit}`]: limit, window, models, on_exceeded, alert_at };
    });
  if (entered === null) return others;
  return [{ ...entryOf(entered), on_exceeded: budget?.on_exceeded ?? "reject" }, ...others];
}
export type BudgetEntries = ReturnType<typeof replaceBudget>;

type BudgetUse = { readonly used: number; readonly limit: number; readonly label: string };

export function findMostUsedBudget(key: Key): BudgetUse | null {
  const { budgets, budgets_used } = key;
  const all: BudgetUse[] = (budgets ?? []).map((budget) => {
    const [unit, limit] = budgetLimitOf(budget);
    const used = budgets_used?.[budget.id] ?? 0;
    const limitText = `${formatAmount(unit, limit, formatBalance)} ${budgetWindowText(budget.window)}`;
    return { used, limit, label: `${formatAmount(unit, used)} of ${limitText}` };
  });
  const simple = findBudgetDollarsUse(key);
  if (simple !== null) all.unshift(simple);
  return all.toSorted((a, b) => computeUsedShare(b) - computeUsedShare(a))[0] ?? null;
}

/** Returns the used part of the key's `budget_dollars`, or null if unset. */
export function findBudgetDollarsUse(key: Key): BudgetUse | null {
  const { budget_dollars: limit = null, budget_period: period, spent_dollars: used } = key;
  if (limit === null) return null;
  const limitText = `${formatAmount("dollars", limit, formatBalance)}${period ? ` a ${period}` : ""}`;
  return { used: used ?? 0, limit, label: `${formatAmount("dollars", used ?? 0)} of ${limitText}` };
}

/** A budget of 0 is used up. */
export function computeUsedShare({ used, limit }: Pick<BudgetUse, "used" | "limit">): number {
  return limit === 0 ? 1 : used / limit;
}
