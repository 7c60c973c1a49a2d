import * as z from "zod/mini";
import { timestamp } from "../lib/clock.ts";
import { externalIdProblem } from "../lib/external-id.ts";
import { invalid, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { BUDGET_PERIODS, NO_TERMS } from "../lib/key-terms.ts";
import type { BudgetPeriod, KeyStanding, KeyTerms, RateState } from "../lib/key-terms.ts";
import { DOLLARS_MAX, dollarsOf, microsOfDollars } from "../lib/money.ts";
import type { Micros } from "../lib/money.ts";

const MODELS_MAX = 100;
const AMOUNT = `must be null, or from 0 to ${DOLLARS_MAX} with at most 6 decimals`;

/** What a body may say of a key's terms. Null is "no such limit"; what is left out stays as it is. */
export const termFields = {
  budget_dollars: z.nullish(
    z.number(AMOUNT).check(z.refine((amount) => microsOfDollars(amount) !== null, AMOUNT)),
  ),
  budget_period: z.nullish(z.enum(BUDGET_PERIODS)),
  tpm_limit: z.nullish(z.int().check(z.minimum(1), z.maximum(1_000_000_000))),
  allowed_models: z.nullish(
    z
      .array(z.string().check(z.minLength(1), z.maxLength(256)))
      .check(z.minLength(1), z.maxLength(MODELS_MAX)),
  ),
  end_user: z.nullish(
    z.string().check(
      z.check((context) => {
        const problem = externalIdProblem(context.value);
        if (problem === null) return;
        context.issues.push({ code: "custom", message: problem, input: context.value });
      }),
    ),
  ),
  expires_at: z.nullish(
    z
      .string()
      .check(
        z.refine(
          (text) =>
            /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/.test(
              text,
            ) && !Number.isNaN(Date.parse(text)),
          "must be a time with its zone, as 2027-01-31T00:00:00Z",
        ),
      ),
  ),
};
const termsSchema = z.object(termFields);
export type TermFields = z.infer<typeof termsSchema>;

/**
 * The names of what is sold here. `entryOf`: how a list of allowed models keeps a name: an alias and `maker/*` as they
 * are, any other name of a model as its id; null for what is no model here. An alias may come to mean another model, so
 * neither an id nor a maker stands for it.
 */
export type ModelNames = {
  readonly entryOf: (name: string) => string | null;
  readonly isAlias: (name: string) => boolean;
};

/** What terms are checked against: the clock, Unix ms, and what is sold here. */
export type TermsContext = { readonly now: number; readonly names: ModelNames };

/** The terms that `fields` make of those `before`. 400 with `param` for what cannot be kept. */
export function changedTerms(
  before: KeyTerms,
  fields: TermFields,
  { now, names }: TermsContext,
): Result<KeyTerms> {
  const models = allowedModels(fields.allowed_models, names);
  if (!models.ok) return models;
  const terms = mergedTerms(before, { ...fields, allowed_models: models.value });
  const { expiresAt } = terms;
  if (terms.budgetMicro === null && typeof fields.budget_period === "string") {
    return invalid("budget_period goes with budget_dollars.", "budget_period");
  }
  if (expiresAt !== null && expiresAt !== before.expiresAt && expiresAt <= now) {
    return invalid(`expires_at must be in the future; it is ${timestamp(now)}.`, "expires_at");
  }
  return success(terms);
}

/** A list of allowed models as it is kept, each entry once. 400 with `param` for a name of no model. */
export function allowedModels<T extends null | undefined>(
  given: readonly string[] | T,
  { entryOf }: Pick<ModelNames, "entryOf">,
): Result<string[] | T> {
  if (given === undefined || given === null) return success(given);
  const entries: string[] = [];
  for (const [at, name] of given.entries()) {
    const entry = entryOf(name);
    const message = "is no model here: give ids or aliases of GET /v1/models, or maker/*.";
    if (entry === null) return invalid(`allowed_models[${at}] ${message}`, `allowed_models[${at}]`);
    if (!entries.includes(entry)) entries.push(entry);
  }
  return success(entries);
}

function mergedTerms(before: KeyTerms, fields: TermFields): KeyTerms {
  const { budget_dollars: dollars, expires_at: end } = fields;
  const budgetMicro = dollars === undefined ? before.budgetMicro : orNull(dollars, microsOfDollars);
  return {
    budgetMicro,
    // a budget that goes takes its period with it
    budgetPeriod: budgetMicro === null ? null : kept(fields.budget_period, before.budgetPeriod),
    tpmLimit: kept(fields.tpm_limit, before.tpmLimit),
    allowedModels: kept(fields.allowed_models, before.allowedModels),
    endUser: kept(fields.end_user, before.endUser),
    expiresAt: end === undefined ? before.expiresAt : orNull(end, Date.parse),
  };
}

function kept<T>(given: T | undefined, before: T): T {
  return given === undefined ? before : given;
}

/** The terms of a new key. */
export function newTerms(fields: TermFields, context: TermsContext): Result<KeyTerms> {
  return changedTerms(NO_TERMS, fields, context);
}

function orNull<T, R>(value: T | null, read: (value: T) => R | null): R | null {
  return value === null ? null : read(value);
}

/** Whether whoever has `after` may do nothing that one with `before` might not. */
export function isTighter(before: KeyTerms, after: KeyTerms, names: ModelNames): boolean {
  const samePeriod = before.budgetMicro === null || after.budgetPeriod === before.budgetPeriod;
  const known = before.allowedModels;
  return (
    samePeriod &&
    isLess(before.budgetMicro, after.budgetMicro) &&
    isLess(before.tpmLimit, after.tpmLimit) &&
    isLess(before.expiresAt, after.expiresAt) &&
    (before.endUser === null || after.endUser === before.endUser) &&
    (known === null ||
      (after.allowedModels?.every((entry) => isWithin(known, entry, names)) ?? false))
  );
}

function isLess(before: number | null, after: number | null): boolean {
  return before === null || (after !== null && after <= before);
}

/** Whether a list allows all that an entry of another does. */
export function isWithin(
  known: readonly string[],
  entry: string,
  { isAlias }: Pick<ModelNames, "isAlias">,
): boolean {
  if (known.includes(entry)) return true;
  return !isAlias(entry) && known.includes(`${entry.slice(0, entry.indexOf("/"))}/*`);
}

/** What is left of each limit of a key, and when it comes back; spend as of now, which the book hears later. */
export function standingView({
  terms,
  requests,
  tokens,
  budget,
}: KeyStanding): Readonly<Record<"limits", object>> {
  return {
    ...(budget !== null && { spent_dollars: dollarsOf(budget.spentMicro) }),
    limits: {
      requests: minuteView(requests),
      tokens: orNull(tokens, minuteView),
      budget: orNull(budget, ({ spentMicro, heldMicro, leftMicro, resetsAt }) => ({
        period: terms.budgetPeriod,
        spent_dollars: dollarsOf(spentMicro),
        held_dollars: dollarsOf(heldMicro),
        left_dollars: dollarsOf(leftMicro),
        resets_at: orNull(resetsAt, timestamp),
      })),
    },
  };
}

function minuteView({ limit, remaining, resetMs }: RateState): object {
  return { limit, remaining, reset_ms: resetMs };
}

/** The terms in a key's record; it shows all of them, or, where a key has none, nothing. */
export type TermsRecord = {
  readonly budget_dollars: number | null;
  readonly budget_period: BudgetPeriod | null;
  /** Of the period; null without a budget. */
  readonly spent_dollars: number | null;
  readonly tpm_limit: number | null;
  readonly allowed_models: readonly string[] | null;
  readonly end_user: string | null;
  readonly expires_at: string | null;
};

export function termsView(terms: KeyTerms, spent: Micros): TermsRecord {
  return {
    budget_dollars: orNull(terms.budgetMicro, dollarsOf),
    budget_period: terms.budgetPeriod,
    spent_dollars: terms.budgetMicro === null ? null : dollarsOf(spent),
    tpm_limit: terms.tpmLimit,
    allowed_models: terms.allowedModels,
    end_user: terms.endUser,
    expires_at: orNull(terms.expiresAt, timestamp),
  };
}
