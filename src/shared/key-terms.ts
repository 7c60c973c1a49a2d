import * as z from "zod/mini";
import { BUDGETS_MAX, budgetsSchema, budgetsView, readBudgets } from "./budgets.ts";
import type { Paused } from "./paused.ts";
import type { Budget, BudgetStatus } from "./budgets.ts";
import { timestamp } from "./clock.ts";
import { externalIdProblem } from "./external-id.ts";
import { DOLLARS_MAX, dollarsOf, micros, microsOfDollars } from "./money.ts";
import type { Micros } from "./money.ts";
import type { Period } from "./period.ts";
import { policySchema } from "./policy.ts";
import type { Policy, PolicyLayer } from "./policy.ts";
import { storedJson } from "./stored-json.ts";

export type BudgetPeriod = "day" | "week" | "month";
export const BUDGET_PERIODS: readonly BudgetPeriod[] = ["day", "week", "month"];

type Limits = {
  /** The budget per `budgetPeriod`, or in total without a period. */
  readonly budgetMicro: Micros;
  readonly budgetPeriod: BudgetPeriod;
  /** Prompt and output tokens in any 60 s. */
  readonly tpmLimit: number;
  readonly maxConcurrent: number;
  /** Model IDs, aliases and `author/*`. An alias matches only the name in the request. */
  readonly allowedModels: readonly string[];
  /** Models are IDs and `author/*`, not aliases. */
  readonly policy: Policy;
  readonly endUser: string;
  /** Unix ms by the home region's clock. The key is rejected from then on. */
  readonly expiresAt: number;
  readonly budgets: readonly Budget[];
  /** A permission to place holds and charges, not a limit. */
  readonly mayHold: true;
};
export type TermName = keyof Limits;

/** A key's limits, in the same form in D1, objects and sessions. */
export type KeyTerms = { readonly [K in TermName]: Limits[K] | null };

export const NO_TERMS: KeyTerms = {
  budgetMicro: null,
  budgetPeriod: null,
  tpmLimit: null,
  maxConcurrent: null,
  allowedModels: null,
  policy: null,
  endUser: null,
  expiresAt: null,
  budgets: null,
  mayHold: null,
};

type Stored = string | number;

type Term<Kept, Said> = {
  readonly said: z.ZodMiniType<Said>;
  readonly read: (reported: Said) => Kept | null;
  readonly show: (kept: Kept) => Said;
  readonly store: (kept: Kept) => Stored;
  readonly recall: (stored: Stored) => Kept | null;
};

const same = <T>(value: T): T => value;

function alike<T extends Stored>(
  reported: z.ZodMiniType<T>,
  recall: (stored: Stored) => T | null,
): Term<T, T> {
  return { said: reported, read: same, show: same, store: same, recall };
}

function term<const Field extends string, const Name extends string, Kept, Said>(
  field: Field,
  stored: Name,
  rest: Term<Kept, Said>,
) {
  const of = (fields: { readonly [F in Field]?: Said | null | undefined }) => fields[field];
  return { field, of, body: z.nullish(rest.said), stored, ...rest };
}

const MODELS_MAX = 100;
const CONCURRENT_MAX = 10_000;
const AMOUNT = `must be null, or from 0 to ${DOLLARS_MAX} with at most 6 decimals`;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/;

const amount: z.ZodMiniType<number> = z
  .number(AMOUNT)
  .check(z.refine((dollars) => microsOfDollars(dollars) !== null, AMOUNT));
const models: z.ZodMiniType<readonly string[]> = z
  .array(z.string().check(z.minLength(1), z.maxLength(256)))
  .check(z.minLength(1), z.maxLength(MODELS_MAX));
const externalId = z.string().check(
  z.check((context) => {
    const problem = externalIdProblem(context.value);
    if (problem === null) return;
    context.issues.push({ code: "custom", message: problem, input: context.value });
  }),
);
export const timeSchema: z.ZodMiniType<string> = z
  .string()
  .check(
    z.refine(
      (text) => TIME.test(text) && !Number.isNaN(Date.parse(text)),
      "must be a time with a time zone, such as 2027-01-31T00:00:00Z",
    ),
  );

export const concurrencySchema: z.ZodMiniType<number> = z
  .int()
  .check(z.minimum(1), z.maximum(CONCURRENT_MAX));

/**
 * All limits of a key except `rpm_limit`, and the permission `may_hold`. Bodies, records, rows and
 * events are generated from this table. Enforce a new limit in hold-checks.do.ts, and compare it in
 * `IS_NO_WIDER`.
 */
export const TERMS = {
  budgetMicro: term("budget_dollars", "budget_micro", {
    said: amount,
    read: microsOfDollars,
    show: dollarsOf,
    store: same<number>,
    recall: (stored) => micros(Number(stored)),
  }),
  budgetPeriod: term(
    "budget_period",
    "budget_period",
    alike(
      z.enum(BUDGET_PERIODS),
      (stored) => BUDGET_PERIODS.find((period) => period === stored) ?? null,
    ),
  ),
  tpmLimit: term(
    "tpm_limit",
    "tpm_limit",
    alike<number>(z.int().check(z.minimum(1), z.maximum(1_000_000_000)), Number),
  ),
  maxConcurrent: term("max_concurrent", "max_concurrent", alike<number>(concurrencySchema, Number)),
  allowedModels: term("allowed_models", "allowed_models", {
    said: models,
    read: same<readonly string[]>,
    show: same,
    store: (list) => JSON.stringify(list),
    recall: (stored) => z.array(z.string()).parse(JSON.parse(String(stored))),
  }),
  policy: term("policy", "policy", {
    said: policySchema,
    read: same<Policy>,
    show: same,
    store: (policy) => JSON.stringify(policy),
    recall: (stored) => storedJson<Policy>(String(stored)),
  }),
  endUser: term("end_user", "end_user", alike<string>(externalId, String)),
  expiresAt: term("expires_at", "expires_at", {
    said: timeSchema,
    read: Date.parse,
    show: timestamp,
    store: same<number>,
    recall: Number,
  }),
  budgets: term("budgets", "budgets", {
    said: budgetsSchema(BUDGETS_MAX),
    read: (list) => (list.length === 0 ? null : readBudgets(list)),
    show: budgetsView,
    store: (list) => JSON.stringify(list),
    recall: (stored) => storedJson<readonly Budget[]>(String(stored)),
  }),
  mayHold: term("may_hold", "may_hold", {
    said: z.boolean(),
    read: (reported): true | null => (reported ? true : null),
    show: (kept): boolean => kept,
    store: Number,
    recall: (stored): true | null => (stored === 1 ? true : null),
  }),
};
type Rows = typeof TERMS;
type Sayings = { readonly [K in TermName]: z.infer<Rows[K]["said"]> };
const EACH: { readonly [K in TermName]: Term<Limits[K], Sayings[K]> & Named<Sayings[K]> } = TERMS;
type Named<T> = {
  readonly stored: string;
  readonly of: (fields: TermFields) => T | null | undefined;
};

const isTerm = (name: string): name is TermName => name in TERMS;
export const TERM_NAMES: readonly TermName[] = Object.keys(TERMS).filter(isTerm);

function byField<V extends { readonly [K in TermName]: unknown }>(
  valueOf: (name: TermName) => V[TermName],
) {
  const entries = TERM_NAMES.map((name) => [TERMS[name].field, valueOf(name)]);
  return Object.fromEntries(entries) as { readonly [K in TermName as Rows[K]["field"]]: V[K] };
}

/** The limits in a body. Null removes a limit. An absent one stays. */
export const keyTermFields = byField<{
  readonly [K in TermName]: Rows[K]["body"];
}>((name) => TERMS[name].body);
const termsSchema = z.object(keyTermFields);
export type TermFields = z.infer<typeof termsSchema>;

function termsBy(of: <K extends TermName>(name: K) => KeyTerms[K]): KeyTerms {
  // `of` determines each limit's value
  return Object.fromEntries(TERM_NAMES.map((name) => [name, of(name)])) as KeyTerms;
}

export function changeTerms(before: KeyTerms, fields: TermFields): KeyTerms {
  return termsBy((name) => {
    const reported = EACH[name].of(fields);
    if (reported === undefined) return before[name];
    return reported === null ? null : EACH[name].read(reported);
  });
}

export function keyTermsView(terms: KeyTerms) {
  const show = <K extends TermName>(name: K): Sayings[K] | null => {
    const kept = terms[name];
    return kept === null ? null : EACH[name].show(kept);
  };
  return byField<{ readonly [K in TermName]: Sayings[K] | null }>(show);
}

export type StoredKeyTerms = Readonly<Record<string, Stored | null>>;

export function storedTerms(terms: KeyTerms): StoredKeyTerms {
  const entryOf = <K extends TermName>(name: K, kept: KeyTerms[K]): [string, Stored | null] => [
    TERMS[name].stored,
    kept === null ? null : EACH[name].store(kept),
  ];
  return Object.fromEntries(TERM_NAMES.map((name) => entryOf(name, terms[name])));
}

export function keyTermsFromStored(stored: StoredKeyTerms): KeyTerms {
  return termsBy((name) => {
    const value = stored[TERMS[name].stored] ?? null;
    return value === null ? null : EACH[name].recall(value);
  });
}

type Slot = { readonly since: string; readonly spent: Micros };

/** A key's spend in total, and in the last day, week and month with a charge. */
export type KeySpend = Readonly<Record<BudgetPeriod, Slot>> & { readonly total: Micros };

/** A past period's spend is 0, so it needn't be reset. */
export function spendInPeriod(
  { budgetPeriod, spend }: Pick<KeyTerms, "budgetPeriod"> & { readonly spend: KeySpend },
  period: Period,
): Micros {
  if (budgetPeriod === null) return spend.total;
  const slot = spend[budgetPeriod];
  return slot.since === period[budgetPeriod] ? slot.spent : micros(0);
}

export function isLimited(terms: KeyTerms): boolean {
  return hasTerms({ ...terms, mayHold: null });
}

export function hasTerms(terms: KeyTerms): boolean {
  // Objects of the previous release know fewer limits.
  return TERM_NAMES.some((name) => (terms[name] ?? null) !== null);
}

export function termsText(terms: KeyTerms): string | null {
  return hasTerms(terms) ? JSON.stringify(terms) : null;
}

export function termsOfText(text: string | null): KeyTerms {
  return text === null ? NO_TERMS : { ...NO_TERMS, ...storedJson<Partial<KeyTerms>>(text) };
}

export type RateState = {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
};

export type ConcurrencyState = {
  readonly scope: "key" | "organization";
  readonly limit: number;
  readonly running: number;
};

export type KeyStatus = {
  readonly terms: KeyTerms;
  readonly requests: RateState;
  readonly tokens: RateState | null;
  /** `resetsAt` is Unix ms; null for a total budget. */
  readonly budget: {
    readonly spentMicro: Micros;
    readonly heldMicro: Micros;
    readonly leftMicro: Micros;
    readonly resetsAt: number | null;
  } | null;
  /** A session has only its own budgets. */
  readonly budgets: readonly BudgetStatus[];
  /** Absent for a session, and without such limits. */
  readonly concurrency?: readonly ConcurrencyState[];
  /** Unix ms. Sessions are valid in one wallet only. */
  readonly madeAt: number;
  /** The number of the last rotation that ended the key's sessions, or 0. */
  readonly sessionsCut: number;
  readonly priceList?: string;
  readonly spend?: Readonly<Record<BudgetPeriod | "total", Micros>>;
  readonly policies?: readonly PolicyLayer[];
  readonly paused?: Paused;
  readonly session?: { readonly spentMicro: Micros; readonly heldMicro: Micros };
};
