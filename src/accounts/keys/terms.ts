import { budgetStatusView } from "../../shared/budgets.ts";
import { timestamp } from "../../shared/clock.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { changeKeyTerms, keyTermsView } from "../../shared/key-terms.ts";
import type { KeyTerms, KeyTermBodyFields } from "../../shared/key-terms.ts";
import type { KeyStatus, RateLimitState } from "../../shared/key-status.ts";
import { shortenModelName } from "../../shared/issue-text.ts";
import { dollarsOf, micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";

/**
 * The model names that a list of allowed models can contain. `entryOf` returns a model's ID, an
 * alias or `author/*` unchanged, and null for an unknown name.
 */
export type ModelNames = {
  readonly entryOf: (name: string) => string | null;
  readonly isAlias: (name: string) => boolean;
};

export type KeyTermsContext = { readonly now: number; readonly names: ModelNames };

/** Returns a key's terms, such as its limits, after a change. */
export function applyTermFields(
  before: KeyTerms,
  fields: KeyTermBodyFields,
  { now, names }: KeyTermsContext,
): Result<KeyTerms> {
  const models = normalizeAllowedModels(fields.allowed_models, names);
  if (!models.ok) return models;
  const changed = changeKeyTerms(before, { ...fields, allowed_models: models.value });
  const terms = changed.budgetMicro === null ? { ...changed, budgetPeriod: null } : changed;
  const { expiresAt } = terms;
  if (terms.budgetMicro === null && typeof fields.budget_period === "string") {
    return invalid("budget_period requires budget_dollars.", "budget_period");
  }
  if (expiresAt !== null && expiresAt !== before.expiresAt && expiresAt <= now) {
    return invalid(
      `expires_at must be in the future. The current time is ${timestamp(now)}.`,
      "expires_at",
    );
  }
  return success(terms);
}

/** Normalizes a list of models. Fails with 400 and `param` for an unknown name. */
export function normalizeAllowedModels<T extends null | undefined>(
  given: readonly string[] | T,
  { entryOf }: Pick<ModelNames, "entryOf">,
): Result<string[] | T> {
  if (given === undefined || given === null) return success(given);
  const entries: string[] = [];
  for (const [at, name] of given.entries()) {
    const entry = entryOf(name);
    if (entry === null) {
      const param = `allowed_models[${at}]`;
      const unknown = `no model here is named '${shortenModelName(name)}'`;
      return invalid(
        `${param}: ${unknown}. Use IDs or aliases from GET /v1/models, or author/*.`,
        param,
      );
    }
    if (!entries.includes(entry)) entries.push(entry);
  }
  return success(entries);
}

export function mapNullable<T, R>(value: T | null, changed: (value: T) => R | null): R | null {
  return value === null ? null : changed(value);
}

export function keyStatusView(
  { terms, requests, tokens, budget, budgets, concurrency = [] }: KeyStatus,
  scope: "key" | "session" = "key",
) {
  return {
    ...budgetsOfStatus(terms, { scope, budget, budgets }),
    ...(budget !== null && { spent_dollars: dollarsOf(budget.spentMicro) }),
    limits: {
      requests: minuteView(requests),
      tokens: mapNullable(tokens, minuteView),
      ...(scope === "key" && { concurrent: [...concurrency] }),
      budget: mapNullable(budget, ({ spentMicro, heldMicro, leftMicro, resetsAt }) => ({
        period: terms.budgetPeriod,
        spent_dollars: dollarsOf(spentMicro),
        held_dollars: dollarsOf(heldMicro),
        left_dollars: dollarsOf(leftMicro),
        resets_at: mapNullable(resetsAt, timestamp),
      })),
    },
  };
}

function budgetsOfStatus(
  { budgetMicro, budgetPeriod }: KeyTerms,
  {
    scope,
    budget,
    budgets,
  }: Pick<KeyStatus, "budget" | "budgets"> & { readonly scope: "key" | "session" },
) {
  const views = budgets.map(budgetStatusView);
  const own = mapNullable(budget, ({ spentMicro, leftMicro, resetsAt }) => ({
    scope,
    limit_dollars: dollarsOf(budgetMicro ?? micros(0)),
    window: budgetPeriod ?? "total",
    limit_remaining: dollarsOf(leftMicro),
    resets_at: mapNullable(resetsAt, timestamp),
    usage: dollarsOf(spentMicro),
  }));
  const all = [
    ...(own === null ? [] : [own]),
    ...views.flatMap((one) => (one.limit_dollars === undefined ? [] : [one])),
  ];
  const [tightest] = all.toSorted((one, other) => one.limit_remaining - other.limit_remaining);
  const effective =
    tightest === undefined
      ? null
      : {
          scope: tightest.scope,
          limit: tightest.limit_dollars,
          window: tightest.window,
          limit_remaining: tightest.limit_remaining,
          limit_reset: tightest.resets_at,
          usage: tightest.usage,
        };
  return { budgets: views, effective_budget: effective };
}

function minuteView({ limit, remaining, resetMs }: RateLimitState) {
  return { limit, remaining, reset_ms: resetMs };
}

export function keyTermsWithSpendView(terms: KeyTerms, spent: Micros) {
  const { budget_dollars, budget_period, ...rest } = keyTermsView(terms);
  const spent_dollars = terms.budgetMicro === null ? null : dollarsOf(spent);
  return { budget_dollars, budget_period, spent_dollars, ...rest };
}
