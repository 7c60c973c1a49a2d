import * as z from "zod/mini";
import { timestamp } from "./clock.ts";
import { externalIdProblem } from "./external-id.ts";
import { DOLLARS_MAX, dollarsOf, micros, microsOfDollars } from "./money.ts";
import type { Micros } from "./money.ts";
import type { Period } from "./period.ts";
import { storedJson } from "./stored-json.ts";

/** How long a key's budget lasts before it begins anew, in UTC; weeks begin on Monday. */
export type BudgetPeriod = "day" | "week" | "month";
export const BUDGET_PERIODS: readonly BudgetPeriod[] = ["day", "week", "month"];

/** The limits that a key may have beyond its requests a minute. */
type Limits = {
  /** What the key may spend in each period, whole micros. */
  readonly budgetMicro: Micros;
  /** Null with a budget: for good. */
  readonly budgetPeriod: BudgetPeriod;
  /** Tokens, prompt and output together, in any 60 s. */
  readonly tpmLimit: number;
  /** Model ids, aliases and `maker/*`. An alias counts only as it was sent. */
  readonly allowedModels: readonly string[];
  /** The end user, by external id, that all its requests are of. */
  readonly endUser: string;
  /** Unix ms, by the clock of the key's home: from then on it is no key. */
  readonly expiresAt: number;
};
export type TermName = keyof Limits;

/**
 * What a key may do: the one shape of it in the book's answer, in the register's, in the wallet that keeps
 * it, and under a session. Null is always "no such limit". The wallet decides by it in the turn that holds.
 */
export type KeyTerms = { readonly [K in TermName]: Limits[K] | null };

export const NO_TERMS: KeyTerms = {
  budgetMicro: null,
  budgetPeriod: null,
  tpmLimit: null,
  allowedModels: null,
  endUser: null,
  expiresAt: null,
};

/** What a column of the book holds. */
type Stored = string | number;

/** One limit of keys, as each place has it. */
type Term<Kept, Said> = {
  /** What a body may say of it beside null. */
  readonly said: z.ZodMiniType<Said>;
  /** Of what a body said; null for what is none. */
  readonly read: (said: Said) => Kept | null;
  /** What a record shows. */
  readonly show: (kept: Kept) => Said;
  readonly store: (kept: Kept) => Stored;
  /** Reads what `store` wrote. */
  readonly recall: (stored: Stored) => Kept | null;
};

const same = <T>(value: T): T => value;

/** A limit that bodies, the program and the book have alike. */
function alike<T extends Stored>(
  said: z.ZodMiniType<T>,
  recall: (stored: Stored) => T | null,
): Term<T, T> {
  return { said, read: same, show: same, store: same, recall };
}

/** `field` is a limit's name in bodies (which `of` reads) and records, `stored` its name in the book and in events. */
function term<const Field extends string, const Name extends string, Kept, Said>(
  field: Field,
  stored: Name,
  rest: Term<Kept, Said>,
) {
  const of = (fields: { readonly [F in Field]?: Said | null | undefined }) => fields[field];
  return { field, of, body: z.nullish(rest.said), stored, ...rest };
}

const MODELS_MAX = 100;
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
const time: z.ZodMiniType<string> = z
  .string()
  .check(
    z.refine(
      (text) => TIME.test(text) && !Number.isNaN(Date.parse(text)),
      "must be a time with its zone, as 2027-01-31T00:00:00Z",
    ),
  );

/** The one list of a key's limits: bodies, records, the book's rows, events, OpenAPI and the CLI have them from it. */
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
  allowedModels: term("allowed_models", "allowed_models", {
    said: models,
    read: same<readonly string[]>,
    show: same,
    store: (list) => JSON.stringify(list),
    recall: (stored) => z.array(z.string()).parse(JSON.parse(String(stored))),
  }),
  endUser: term("end_user", "end_user", alike<string>(externalId, String)),
  expiresAt: term("expires_at", "expires_at", {
    said: time,
    read: Date.parse,
    show: timestamp,
    store: same<number>,
    recall: Number,
  }),
};
type Rows = typeof TERMS;
type Sayings = { readonly [K in TermName]: z.infer<Rows[K]["said"]> };
/** The same list, by what a loop over it needs to know. */
const EACH: { readonly [K in TermName]: Term<Limits[K], Sayings[K]> & Named<Sayings[K]> } = TERMS;
type Named<T> = {
  readonly stored: string;
  readonly of: (fields: TermFields) => T | null | undefined;
};

const isTerm = (name: string): name is TermName => name in TERMS;
export const TERM_NAMES: readonly TermName[] = Object.keys(TERMS).filter(isTerm);

/** A value for each limit, under the names of bodies and records. */
function byField<V extends { readonly [K in TermName]: unknown }>(
  valueOf: (name: TermName) => V[TermName],
) {
  const entries = TERM_NAMES.map((name) => [TERMS[name].field, valueOf(name)]);
  // each limit has its value: the names are those of the list
  return Object.fromEntries(entries) as { readonly [K in TermName as Rows[K]["field"]]: V[K] };
}

/** What a body may say of a key's terms. Null is "no such limit"; what is left out stays as it is. */
export const termFields = byField<{
  readonly [K in TermName]: Rows[K]["body"];
}>((name) => TERMS[name].body);
const termsSchema = z.object(termFields);
export type TermFields = z.infer<typeof termsSchema>;

function termsBy(of: <K extends TermName>(name: K) => KeyTerms[K]): KeyTerms {
  // each limit has its own value: `of` says which
  return Object.fromEntries(TERM_NAMES.map((name) => [name, of(name)])) as KeyTerms;
}

/** The terms that `fields` make of those `before`, each by itself. */
export function readTerms(before: KeyTerms, fields: TermFields): KeyTerms {
  return termsBy((name) => {
    const said = EACH[name].of(fields);
    if (said === undefined) return before[name];
    return said === null ? null : EACH[name].read(said);
  });
}

/** The terms as a key's record shows them. */
export function keyTermsView(terms: KeyTerms) {
  const show = <K extends TermName>(name: K): Sayings[K] | null => {
    const kept = terms[name];
    return kept === null ? null : EACH[name].show(kept);
  };
  return byField<{ readonly [K in TermName]: Sayings[K] | null }>(show);
}

/** Terms by their names in the book; null for those that a key has not. */
export type StoredTerms = Readonly<Record<string, Stored | null>>;

export function storedTerms(terms: KeyTerms): StoredTerms {
  const entryOf = <K extends TermName>(name: K, kept: KeyTerms[K]): [string, Stored | null] => [
    TERMS[name].stored,
    kept === null ? null : EACH[name].store(kept),
  ];
  return Object.fromEntries(TERM_NAMES.map((name) => entryOf(name, terms[name])));
}

/** Reads what `storedTerms` wrote. */
export function readStoredTerms(stored: StoredTerms): KeyTerms {
  return termsBy((name) => {
    const value = stored[TERMS[name].stored] ?? null;
    return value === null ? null : EACH[name].recall(value);
  });
}

/** What was spent in the day, week or month that begins with `since`. */
type Slot = { readonly since: string; readonly spent: Micros };

/** What a key has spent in all, and in the newest day, week and month that it was charged in. */
export type KeySpend = Readonly<Record<BudgetPeriod, Slot>> & { readonly total: Micros };

/** What counts against a budget in `period`; a slot whose period has passed reads 0, so nothing ever resets it. */
export function budgetSpent(
  { budgetPeriod, spend }: Pick<KeyTerms, "budgetPeriod"> & { readonly spend: KeySpend },
  period: Period,
): Micros {
  if (budgetPeriod === null) return spend.total;
  const slot = spend[budgetPeriod];
  return slot.since === period[budgetPeriod] ? slot.spent : micros(0);
}

/** Whether a key has any limit of these: then it may pay and look, and manage nothing. */
export function isLimited(terms: KeyTerms): boolean {
  return TERM_NAMES.some((name) => terms[name] !== null);
}

/** Terms as one text, for an object's own table; null for a key without any. */
export function termsText(terms: KeyTerms): string | null {
  return isLimited(terms) ? JSON.stringify(terms) : null;
}

/** Reads what `termsText` wrote. */
export function termsOfText(text: string | null): KeyTerms {
  return text === null ? NO_TERMS : { ...NO_TERMS, ...storedJson<Partial<KeyTerms>>(text) };
}

/** Whether a model may be asked for: by the name that was sent, or by the id that it came to. */
export function allowsModel(
  { allowedModels }: Pick<KeyTerms, "allowedModels">,
  model: { readonly sent: string; readonly id: string },
): boolean {
  if (allowedModels === null) return true;
  const maker = `${model.id.slice(0, model.id.indexOf("/"))}/*`;
  return allowedModels.some((entry) => [model.sent, model.id, maker].includes(entry));
}

/** What is left of a limit that counts over 60 s: `resetMs` until more is. */
export type RateState = {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
};

/** How a key stands by its terms at this moment, as its organization's wallet knows it. */
export type KeyStatus = {
  readonly terms: KeyTerms;
  readonly requests: RateState;
  /** Null without a token limit. */
  readonly tokens: RateState | null;
  /** Null without a budget. `resetsAt`: Unix ms; null for a budget that is for good. */
  readonly budget: {
    readonly spentMicro: Micros;
    readonly heldMicro: Micros;
    readonly leftMicro: Micros;
    readonly resetsAt: number | null;
  } | null;
  /** When its wallet was made, Unix ms: sessions are minted for one wallet. */
  readonly madeAt: number;
  /** The number of the rotation that last ended all sessions of the key; 0 for none. */
  readonly sessionsCut: number;
  /** The price list of its organization's own; left out without one. */
  readonly priceList?: string;
  /** What a session has spent, where one asks. */
  readonly session?: { readonly spentMicro: Micros; readonly heldMicro: Micros };
};
