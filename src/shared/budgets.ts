import * as z from "zod/mini";
import { timestamp } from "./clock.ts";
import { sha256HexSync } from "./hash.ts";
import { DOLLARS_MAX, dollarsOf, micros, microsOfDollars } from "./money.ts";

export const BUDGET_SCOPES = ["organization", "member", "key", "session", "end_user"] as const;
export type BudgetScope = (typeof BUDGET_SCOPES)[number];

/** Units of budgets. Dollars are counted in micro-credits. */
export const BUDGET_UNITS = ["dollars", "tokens", "requests"] as const;
export type BudgetUnit = (typeof BUDGET_UNITS)[number];

/** Maximum budgets of an organization, member, key or end user. */
export const BUDGETS_MAX = 8;
export const SESSION_BUDGETS_MAX = 4;

/** A limit on spend, tokens or requests in a window. */
export type Budget = {
  /** An ID derived from unit, window and models, so it stays the same when the amount changes. */
  readonly id: string;
  readonly unit: BudgetUnit;
  readonly amount: number;
  /** `1m` to `1440m` (rolling), `day`, `week` or `month` (UTC), or `total`. */
  readonly window: string;
  /** Model IDs and `author/*`. Null if the budget counts all models. */
  readonly models: readonly string[] | null;
  readonly onExceeded: "reject" | "pause";
  readonly alertAt: number | null;
};

/** A budget's owner. `subject` is "" for the organization and an internal ID for an end user. */
export type BudgetOwner = { readonly scope: BudgetScope; readonly subject: string };

/** A budget and its current counts. Times are Unix ms. */
export type BudgetStatus = {
  readonly scope: BudgetScope;
  readonly budget: Budget;
  readonly used: number;
  readonly held: number;
  /**
   * Time when more of the budget becomes available. Null for a total budget or an unused rolling
   * window.
   */
  readonly resetsAt: number | null;
  readonly countingSince: number;
};

const MODELS_MAX = 100;
const MINUTES_MAX = 1440;
const COUNT_MAX = 1_000_000_000_000;
const WINDOW = /^(?:[1-9]\d{0,3}m|day|week|month|total)$/;
const MODEL = /^[^/\s]{1,64}\/[^\s]{1,190}$/;
const AMOUNT = `must be a number from 0 to ${DOLLARS_MAX} with at most 6 decimals`;

const countSchema = z.int().check(z.minimum(0), z.maximum(COUNT_MAX));
const budgetFieldsSchema = z
  .strictObject({
    id: z.optional(z.string()),
    limit_dollars: z.optional(
      z.number(AMOUNT).check(z.refine((dollars) => microsOfDollars(dollars) !== null, AMOUNT)),
    ),
    limit_tokens: z.optional(countSchema),
    limit_requests: z.optional(countSchema),
    window: z.string().check(z.refine(isWindow, "must be 1m to 1440m, day, week, month or total")),
    models: z.nullish(
      z
        .array(z.string().check(z.regex(MODEL, "must be the ID of a model, or author/*")))
        .check(z.minLength(1), z.maxLength(MODELS_MAX)),
    ),
    on_exceeded: z.optional(z.enum(["reject", "pause"])),
    alert_at: z.nullish(z.number().check(z.minimum(0), z.maximum(1))),
  })
  .check(
    z.refine(
      (one) => amountsOf(one).length === 1,
      "must have one of limit_dollars, limit_tokens and limit_requests",
    ),
    z.refine((one) => one.on_exceeded !== "pause" || !one.models, {
      error: "can't be pause for a budget with models",
      path: ["on_exceeded"],
    }),
  );
type BudgetFields = z.infer<typeof budgetFieldsSchema>;

export function budgetsSchema(countMax: number): z.ZodMiniType<readonly BudgetFields[]> {
  return z.array(budgetFieldsSchema).check(
    z.maxLength(countMax),
    z.refine(
      (list) => new Set(list.map((one) => budgetOf(one).id)).size === list.length,
      "must have one entry per unit, window and models",
    ),
  );
}

export function budgetsFromFields(list: readonly BudgetFields[]): readonly Budget[] {
  return list.map(budgetOf);
}

export function budgetStatusView({ scope, budget, ...status }: BudgetStatus) {
  const { used, held, resetsAt, countingSince } = status;
  const remaining = Math.max(0, budget.amount - used - held);
  const toUnit = (amount: number): number =>
    budget.unit === "dollars" ? dollarsOf(micros(amount)) : amount;
  return {
    scope,
    ...budgetView(budget),
    usage: toUnit(used),
    held: toUnit(held),
    limit_remaining: toUnit(remaining),
    resets_at: resetsAt === null ? null : timestamp(resetsAt),
    counting_since: timestamp(countingSince),
  };
}

export function budgetsView(budgets: readonly Budget[]): BudgetView[] {
  return budgets.map(budgetView);
}
type BudgetView = ReturnType<typeof budgetView>;

function budgetView({ id, unit, amount, window, models, onExceeded, alertAt }: Budget) {
  return {
    id,
    ...limitView(unit, amount),
    window,
    models: models === null ? null : [...models],
    on_exceeded: onExceeded,
    alert_at: alertAt,
  };
}

function limitView(unit: BudgetUnit, amount: number) {
  if (unit === "dollars") return { limit_dollars: dollarsOf(micros(amount)) };
  return unit === "tokens" ? { limit_tokens: amount } : { limit_requests: amount };
}

function budgetOf(fields: BudgetFields): Budget {
  const [[unit, amount] = ["dollars", 0] as const] = amountsOf(fields);
  const modelList = fields.models ?? null;
  const models = modelList === null ? null : [...new Set(modelList)].toSorted();
  const { window } = fields;
  return {
    id: `lim_${sha256HexSync(JSON.stringify([unit, window, models])).slice(0, 16)}`,
    unit,
    amount,
    window,
    models,
    onExceeded: fields.on_exceeded ?? "reject",
    alertAt: fields.alert_at ?? null,
  };
}

function amountsOf(fields: BudgetFields): (readonly [BudgetUnit, number])[] {
  const { limit_dollars: dollars, limit_tokens: tokens, limit_requests: requests } = fields;
  return [
    ...(dollars === undefined ? [] : [["dollars", microsOfDollars(dollars) ?? 0] as const]),
    ...(tokens === undefined ? [] : [["tokens", tokens] as const]),
    ...(requests === undefined ? [] : [["requests", requests] as const]),
  ];
}

function isWindow(window: string): boolean {
  return WINDOW.test(window) && (rollingMinutes(window) ?? 1) <= MINUTES_MAX;
}

/** Returns a rolling window's minutes, or null for other windows. */
export function rollingMinutes(window: string): number | null {
  return window.endsWith("m") ? Number(window.slice(0, -1)) : null;
}

/**
 * Reports whether a budget counts requests to a model. All budgets count an unknown model (null).
 */
export function countsModel({ models }: Pick<Budget, "models">, model: string | null): boolean {
  if (models === null || model === null) return true;
  return models.includes(model) || models.includes(`${model.slice(0, model.indexOf("/"))}/*`);
}

/** Reports whether no budget was removed or relaxed. */
export function areBudgetsTighter(before: readonly Budget[], after: readonly Budget[]): boolean {
  return before.every((old) =>
    after.some(
      (one) => one.id === old.id && one.amount <= old.amount && one.onExceeded === old.onExceeded,
    ),
  );
}
