import * as z from "zod/mini";
import {
  areBudgetsTighter,
  BUDGETS_MAX,
  budgetsFromFields,
  budgetsSchema,
  budgetsView,
} from "./budgets.ts";
import type { Budget } from "./budgets.ts";
import { timestamp } from "./clock.ts";
import { findExternalIdProblem } from "./external-id.ts";
import { DOLLARS_MAX, dollarsOf, micros, microsOfDollars } from "./money.ts";
import type { Micros } from "./money.ts";
import { isPolicyWithin, policySchema } from "./policy.ts";
import type { Policy } from "./policy.ts";
import { parseStoredJson } from "./stored-json.ts";

export type BudgetPeriod = "day" | "week" | "month";
export const BUDGET_PERIODS: readonly BudgetPeriod[] = ["day", "week", "month"];

type Limits = {
  /** The budget in each `budgetPeriod`, or for the key's lifetime if there is none. */
  readonly budgetMicro: Micros;
  readonly budgetPeriod: BudgetPeriod;
  /** Prompt and output tokens in any 60 s. */
  readonly tpmLimit: number;
  readonly maxConcurrent: number;
  /** Model IDs, aliases and `author/*`. An alias covers only requests that use the alias. */
  readonly allowedModels: readonly string[];
  /** Restrictions on models, providers and regions. The models can't be aliases. */
  readonly policy: Policy;
  readonly endUser: string;
  /** Expiry (Unix ms) by the home region's clock. */
  readonly expiresAt: number;
  readonly budgets: readonly Budget[];
  /** The permission to place holds and charges. It isn't a limit. */
  readonly mayHold: true;
};
/** A limit's name in `KeyTerms`. */
type KeyTermName = keyof Limits;

/** A key's limits, in the form that D1, objects and sessions store. */
export type KeyTerms = { readonly [K in KeyTermName]: Limits[K] | null };

/** `isAlias` reports whether a name in a list of allowed models is an alias. */
type Names = { readonly isAlias: (name: string) => boolean };
type Comparison = Names & { readonly termsBefore: KeyTerms };
/** Reports whether a changed limit is at least as strict as before. Null is no limit. */
type IsNotRaised<Value> = (before: Value | null, after: Value | null, of: Comparison) => boolean;

type StoredValue = string | number;

type Term<Value, FieldValue> = {
  readonly isNotRaised: IsNotRaised<Value>;
  readonly schema: z.ZodMiniType<FieldValue>;
  readonly read: (fieldValue: FieldValue) => Value | null;
  readonly show: (value: Value) => FieldValue;
  readonly store: (value: Value) => StoredValue;
  readonly readStored: (stored: StoredValue) => Value | null;
};

const identity = <T>(value: T): T => value;

function termWithoutConversion<T extends StoredValue>(
  schema: z.ZodMiniType<T>,
  readStored: (stored: StoredValue) => T | null,
  isNotRaised: IsNotRaised<T>,
): Term<T, T> {
  return { schema, read: identity, show: identity, store: identity, readStored, isNotRaised };
}

function defineTerm<const Field extends string, const Name extends string, Value, FieldValue>(
  field: Field,
  stored: Name,
  conversions: Term<Value, FieldValue>,
) {
  const of = (fields: { readonly [F in Field]?: FieldValue | null | undefined }) => fields[field];
  return { field, of, body: z.nullish(conversions.schema), stored, ...conversions };
}

const isAtMost: IsNotRaised<number> = (before, after) =>
  (after ?? Infinity) <= (before ?? Infinity);

function hasFewerModels(
  before: readonly string[] | null,
  after: readonly string[] | null,
  names: Names,
): boolean {
  if (before === null) return true;
  return after !== null && after.every((entry) => isModelAllowed(before, entry, names));
}

/** Reports whether a list of allowed models covers a name. `author/*` doesn't cover aliases. */
export function isModelAllowed(
  allowed: readonly string[],
  entry: string,
  { isAlias }: Names,
): boolean {
  if (allowed.includes(entry)) return true;
  return !isAlias(entry) && allowed.includes(`${entry.slice(0, entry.indexOf("/"))}/*`);
}

const MODELS_MAX = 100;
const CONCURRENT_MAX = 10_000;
const AMOUNT = `must be null, or from 0 to ${DOLLARS_MAX} with at most 6 decimals`;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/;

export const dollarsSchema: z.ZodMiniType<number> = z
  .number(AMOUNT)
  .check(z.refine((dollars) => microsOfDollars(dollars) !== null, AMOUNT));
const modelListSchema: z.ZodMiniType<readonly string[]> = z
  .array(z.string().check(z.minLength(1), z.maxLength(256)))
  .check(z.minLength(1), z.maxLength(MODELS_MAX));
const externalIdSchema = z.string().check(
  z.check((context) => {
    const problem = findExternalIdProblem(context.value);
    if (problem === null) return;
    context.issues.push({ code: "custom", message: problem, input: context.value });
  }),
);
export const timeWithZoneSchema: z.ZodMiniType<string> = z
  .string()
  .check(
    z.refine(
      (text) => TIME.test(text) && !Number.isNaN(Date.parse(text)),
      "must be a time with a time zone, such as 2027-01-31T00:00:00Z",
    ),
  );

const tokenLimitSchema = z.int().check(z.minimum(1), z.maximum(1_000_000_000));
export const concurrencySchema: z.ZodMiniType<number> = z
  .int()
  .check(z.minimum(1), z.maximum(CONCURRENT_MAX));

/**
 * All limits of a key except `rpm_limit`, and the permission `may_hold`. Bodies, key objects, rows
 * and events derive from this table. Enforce a new limit in hold-checks.do.ts.
 */
export const KEY_TERMS = {
  budgetMicro: defineTerm("budget_dollars", "budget_micro", {
    schema: dollarsSchema,
    read: microsOfDollars,
    show: dollarsOf,
    store: identity<number>,
    readStored: (stored) => micros(Number(stored)),
    isNotRaised: isAtMost,
  }),
  budgetPeriod: defineTerm(
    "budget_period",
    "budget_period",
    termWithoutConversion(
      z.enum(BUDGET_PERIODS),
      (stored) => BUDGET_PERIODS.find((period) => period === stored) ?? null,
      (before, after, { termsBefore }) => termsBefore.budgetMicro === null || after === before,
    ),
  ),
  tpmLimit: defineTerm(
    "tpm_limit",
    "tpm_limit",
    termWithoutConversion<number>(tokenLimitSchema, Number, isAtMost),
  ),
  maxConcurrent: defineTerm(
    "max_concurrent",
    "max_concurrent",
    termWithoutConversion<number>(concurrencySchema, Number, isAtMost),
  ),
  allowedModels: defineTerm("allowed_models", "allowed_models", {
    schema: modelListSchema,
    read: identity<readonly string[]>,
    show: identity,
    store: (list) => JSON.stringify(list),
    readStored: (stored) => z.array(z.string()).parse(JSON.parse(String(stored))),
    isNotRaised: hasFewerModels,
  }),
  policy: defineTerm("policy", "policy", {
    schema: policySchema,
    read: identity<Policy>,
    show: identity,
    store: (policy) => JSON.stringify(policy),
    readStored: (stored) => parseStoredJson<Policy>(String(stored)),
    isNotRaised: isPolicyWithin,
  }),
  endUser: defineTerm(
    "end_user",
    "end_user",
    termWithoutConversion<string>(
      externalIdSchema,
      String,
      (before, after) => before === null || after === before,
    ),
  ),
  expiresAt: defineTerm("expires_at", "expires_at", {
    schema: timeWithZoneSchema,
    read: Date.parse,
    show: timestamp,
    store: identity<number>,
    readStored: Number,
    isNotRaised: isAtMost,
  }),
  budgets: defineTerm("budgets", "budgets", {
    schema: budgetsSchema(BUDGETS_MAX),
    read: (list) => (list.length === 0 ? null : budgetsFromFields(list)),
    show: budgetsView,
    store: (list) => JSON.stringify(list),
    readStored: (stored) => parseStoredJson<readonly Budget[]>(String(stored)),
    isNotRaised: (before, after) => areBudgetsTighter(before ?? [], after ?? []),
  }),
  mayHold: defineTerm("may_hold", "may_hold", {
    schema: z.boolean(),
    read: (fieldValue): true | null => (fieldValue ? true : null),
    show: (value): boolean => value,
    store: Number,
    readStored: (stored): true | null => (stored === 1 ? true : null),
    isNotRaised: (before, after) => before === true || after === null,
  }),
};
type Terms = typeof KEY_TERMS;
type TermFieldValues = { readonly [K in KeyTermName]: z.infer<Terms[K]["schema"]> };
const TYPED_TERMS: {
  readonly [K in KeyTermName]: Term<Limits[K], TermFieldValues[K]> &
    FieldAccess<TermFieldValues[K]>;
} = KEY_TERMS;
type FieldAccess<T> = {
  readonly stored: string;
  readonly of: (fields: KeyTermBodyFields) => T | null | undefined;
};

const isTerm = (name: string): name is KeyTermName => name in KEY_TERMS;
const KEY_TERM_NAMES: readonly KeyTermName[] = Object.keys(KEY_TERMS).filter(isTerm);

function mapByField<V extends { readonly [K in KeyTermName]: unknown }>(
  valueOf: (name: KeyTermName) => V[KeyTermName],
) {
  const entries = KEY_TERM_NAMES.map((name) => [KEY_TERMS[name].field, valueOf(name)]);
  return Object.fromEntries(entries) as { readonly [K in KeyTermName as Terms[K]["field"]]: V[K] };
}

/** The body fields that set limits. Null removes a limit, and an absent field keeps it. */
export const keyTermFields = mapByField<{
  readonly [K in KeyTermName]: Terms[K]["body"];
}>((name) => KEY_TERMS[name].body);
const termsSchema = z.object(keyTermFields);
export type KeyTermBodyFields = z.infer<typeof termsSchema>;

function mapTerms(of: <K extends KeyTermName>(name: K) => KeyTerms[K]): KeyTerms {
  return Object.fromEntries(KEY_TERM_NAMES.map((name) => [name, of(name)])) as KeyTerms;
}

export const EMPTY_KEY_TERMS: KeyTerms = mapTerms(() => null);

/** Reports whether no limit was raised or removed, and no permission added. */
export function areKeyTermsTighter(before: KeyTerms, after: KeyTerms, { isAlias }: Names): boolean {
  const of = { isAlias, termsBefore: before };
  const isNotRaised = <K extends KeyTermName>(name: K, from: KeyTerms[K], to: KeyTerms[K]) =>
    TYPED_TERMS[name].isNotRaised(from, to, of);
  return KEY_TERM_NAMES.every((name) => isNotRaised(name, before[name], after[name]));
}

export function changeKeyTerms(before: KeyTerms, fields: KeyTermBodyFields): KeyTerms {
  return mapTerms((name) => {
    const fieldValue = TYPED_TERMS[name].of(fields);
    if (fieldValue === undefined) return before[name];
    return fieldValue === null ? null : TYPED_TERMS[name].read(fieldValue);
  });
}

export function keyTermsView(terms: KeyTerms) {
  const show = <K extends KeyTermName>(name: K): TermFieldValues[K] | null => {
    const value = terms[name];
    return value === null ? null : TYPED_TERMS[name].show(value);
  };
  return mapByField<{ readonly [K in KeyTermName]: TermFieldValues[K] | null }>(show);
}

/** A key's limits as D1 stores them, by field. */
type StoredKeyTerms = Readonly<Record<string, StoredValue | null>>;

export function toStoredKeyTerms(terms: KeyTerms): StoredKeyTerms {
  const entryOf = <K extends KeyTermName>(
    name: K,
    value: KeyTerms[K],
  ): [string, StoredValue | null] => [
    KEY_TERMS[name].stored,
    value === null ? null : TYPED_TERMS[name].store(value),
  ];
  return Object.fromEntries(KEY_TERM_NAMES.map((name) => entryOf(name, terms[name])));
}

function keyTermsFromStored(stored: StoredKeyTerms): KeyTerms {
  return mapTerms((name) => {
    const value = stored[KEY_TERMS[name].stored] ?? null;
    return value === null ? null : TYPED_TERMS[name].readStored(value);
  });
}

/** Reports whether a key has limits besides `mayHold`. */
export function hasLimits(terms: KeyTerms): boolean {
  return hasAnyKeyTerms({ ...terms, mayHold: null });
}

export function hasAnyKeyTerms(terms: KeyTerms): boolean {
  // `terms` from the previous release's objects lack newer limits.
  return KEY_TERM_NAMES.some((name) => (terms[name] ?? null) !== null);
}

export function keyTermsToJson(terms: KeyTerms): string | null {
  return hasAnyKeyTerms(terms) ? JSON.stringify(terms) : null;
}

export function keyTermsFromJson(text: string | null): KeyTerms {
  return text === null
    ? EMPTY_KEY_TERMS
    : { ...EMPTY_KEY_TERMS, ...parseStoredJson<Partial<KeyTerms>>(text) };
}

/** Limits with a column in `key_terms`. The column `more` has the others as JSON. */
export const KEY_TERM_COLUMNS = [
  "budget_micro",
  "budget_period",
  "tpm_limit",
  "allowed_models",
  "end_user",
  "expires_at",
] as const;
type TermColumn = (typeof KEY_TERM_COLUMNS)[number];

export type KeyTermsRow = Readonly<Record<TermColumn, string | number | null>> & {
  readonly more: string | null;
};

export function keyTermsFromRow({
  more,
  ...columns
}: StoredKeyTerms & Pick<KeyTermsRow, "more">): KeyTerms {
  return keyTermsFromStored({ ...parseOtherTerms(more), ...columns });
}

export function keyTermsToRowValues(
  terms: KeyTerms,
  columns: readonly string[] = KEY_TERM_COLUMNS,
): readonly (string | number | null)[] {
  const stored = toStoredKeyTerms(terms);
  const otherTerms = Object.entries(stored).filter(
    ([name, value]) => !columns.includes(name) && value !== null,
  );
  return [
    ...columns.map((name) => stored[name] ?? null),
    otherTerms.length === 0 ? null : JSON.stringify(Object.fromEntries(otherTerms)),
  ];
}

const otherTermsSchema = z.record(z.string(), z.union([z.string(), z.number()]));

function parseOtherTerms(text: string | null): StoredKeyTerms {
  return text === null ? {} : otherTermsSchema.parse(JSON.parse(text));
}
