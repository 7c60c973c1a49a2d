import { micros } from "./money.ts";
import type { Micros } from "./money.ts";
import type { Period } from "./period.ts";

/** How long a key's budget lasts before it begins anew, in UTC; weeks begin on Monday. */
export type BudgetPeriod = "day" | "week" | "month";
export const BUDGET_PERIODS: readonly BudgetPeriod[] = ["day", "week", "month"];

/**
 * What a key may do beyond its requests a minute: the one shape of it in the book's answer, in
 * the register's, in the wallet that keeps it, and under a session. Null is
 * always "no such limit". The wallet decides by it in the turn that holds.
 */
export type KeyTerms = {
  /** What the key may spend in each period, whole micros. */
  readonly budgetMicro: Micros | null;
  /** Null with a budget: for good. */
  readonly budgetPeriod: BudgetPeriod | null;
  /** Tokens, prompt and output together, in any 60 s. */
  readonly tpmLimit: number | null;
  /** Model ids, aliases and `maker/*`. An alias counts only as it was sent. */
  readonly allowedModels: readonly string[] | null;
  /** The end user, by external id, that all its requests are of. */
  readonly endUser: string | null;
  /** Unix ms, by the clock of the key's home: from then on it is no key. */
  readonly expiresAt: number | null;
};

export const NO_TERMS: KeyTerms = {
  budgetMicro: null,
  budgetPeriod: null,
  tpmLimit: null,
  allowedModels: null,
  endUser: null,
  expiresAt: null,
};

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
  return (
    terms.budgetMicro !== null ||
    terms.tpmLimit !== null ||
    terms.allowedModels !== null ||
    terms.endUser !== null ||
    terms.expiresAt !== null
  );
}

/** Terms as one text, for an object's own table; null for a key without any. */
export function termsText(terms: KeyTerms): string | null {
  return isLimited(terms) ? JSON.stringify(terms) : null;
}

/** Reads what `termsText` wrote. */
export function termsOfText(text: string | null): KeyTerms {
  return text === null ? NO_TERMS : { ...NO_TERMS, ...(JSON.parse(text) as Partial<KeyTerms>) };
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

/** How a key stands by its terms at this moment, as its organisation's wallet knows it. */
export type KeyStanding = {
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
  /** What a session has spent, where one asks. */
  readonly session?: { readonly spentMicro: Micros; readonly heldMicro: Micros };
};
