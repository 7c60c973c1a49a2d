import { assert } from "../lib/assert.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Failure, Result } from "../lib/failure.ts";
import { micros } from "../lib/money.ts";
import type { Micros } from "../lib/money.ts";
import type { Books, OpenHold } from "./open-holds.ts";
import { freeOf, heldBy } from "./open-holds.ts";
import type { Period } from "./periods.ts";
import { addSpend, NO_CAP, NOTHING, quotaLeft } from "./quota.ts";
import type { EndUser, Left } from "./quota.ts";

/** The state of a request: `held` is open, every other one is final (`expired` may still be settled). */
export type RequestState = "held" | "settled" | "voided" | "expired" | "refused";

/** What the wallet remembers of an id. `granted` is null when it was never granted. */
export type Known = {
  readonly id: string;
  readonly state: RequestState;
  readonly least: Micros;
  readonly most: Micros;
  readonly externalId: string | null;
  readonly endUserId: string | null;
  readonly keyId: string;
  readonly admittedAt: number;
  readonly period: Period;
  readonly granted: Micros | null;
  readonly charged: Micros;
  readonly shortfall: Micros;
  /** Why it was refused, when it was. */
  readonly failure: Failure | null;
};

/** The part of a hold that must be the same when its id comes again. */
export type HoldContent = Pick<Known, "id" | "least" | "most" | "externalId">;

/** What an outcome came to. `late`: the hold had expired. `overHold`: it cost more than was held. */
export type Posting = {
  readonly charged: Micros;
  readonly shortfall: Micros;
  readonly late: boolean;
  readonly overHold: boolean;
};

/**
 * The guards that keep money exact, apart from what uses them so that a test can take each one away
 * and see the model object.
 */
export type Rules = {
  readonly recallHold: (known: Known, content: HoldContent) => Result<Micros> | null;
  readonly recallSettle: (known: Known) => Recalled | null;
  readonly voidLeavesTombstone: boolean;
  readonly charge: (cost: Micros, held: Micros, free: number) => Micros;
  readonly quotaLeft: typeof quotaLeft;
  readonly addSpend: typeof addSpend;
};

/** An outcome decided before: what was charged, or that nothing can be. */
export type Recalled =
  | { readonly charged: Micros; readonly shortfall: Micros }
  | "voided"
  | "unknown";

export const RULES: Rules = {
  recallHold,
  recallSettle,
  voidLeavesTombstone: true,
  charge: (cost, held, free) => micros(Math.min(cost, held + Math.max(0, free))),
  quotaLeft,
  addSpend,
};

/** What is asked for: the end user as it is, or as it would be made; null without one. */
export type Ask = {
  readonly least: Micros;
  readonly most: Micros;
  readonly endUser: EndUser | null;
  readonly period: Period;
};

/** Grants between least and most, or says what is in the way: quota before balance, month before day. */
export function decideHold(books: Books, ask: Ask, rules: Rules = RULES): Result<Micros> {
  assert(ask.least >= 0 && ask.least <= ask.most, "a hold needs 0 <= least <= most");
  const user = ask.endUser;
  const left = (held = NOTHING): Left =>
    user === null ? NO_CAP : rules.quotaLeft(user, ask.period, held);
  const held = user === null ? NOTHING : heldBy(books, user.id, ask.period);
  const verdict = weigh(ask, freeOf(books), left(held));
  if (typeof verdict === "number") return success(verdict);
  const onlyHolds = typeof weigh(ask, books.balance, left()) === "number";
  if (verdict !== "balance") return refuse({ kind: "quota_exceeded", period: verdict, onlyHolds });
  return refuse({
    kind: "balance_too_low",
    balanceMicro: freeOf(books),
    requiredMicro: ask.least,
    onlyHolds,
  });
}

function weigh(ask: Ask, free: Micros, left: Left): Micros | "month" | "day" | "balance" {
  if (left.monthly <= 0 || left.monthly < ask.least) return "month";
  if (left.daily <= 0 || left.daily < ask.least) return "day";
  if (free < ask.least) return "balance";
  return micros(Math.min(ask.most, free, left.daily, left.monthly));
}

/** The answer an id got before: its grant, its refusal, or that it is over. Other content is a bug. */
function recallHold(known: Known, content: HoldContent): Result<Micros> | null {
  if (known.granted === null && known.state === "voided") return refuse({ kind: "overloaded" });
  const same =
    known.least === content.least &&
    known.most === content.most &&
    known.externalId === content.externalId;
  assert(same, `hold ${content.id} came again with other content`);
  if (known.failure !== null) return refuse(known.failure);
  const stands = known.state === "held" || known.state === "settled";
  return stands && known.granted !== null ? success(known.granted) : refuse({ kind: "overloaded" });
}

/**
 * Charges at most what is held plus what is free. A hold that expired has nothing held any more, and
 * its end user's day and month of admission bound it too: losing it was our fault.
 */
export function decideSettle(
  books: Books,
  settled: {
    readonly known: Known | OpenHold;
    readonly cost: Micros;
    readonly endUser: EndUser | null;
  },
  rules: Rules = RULES,
): Posting {
  const { known, cost, endUser } = settled;
  assert(cost >= 0, "a cost is never negative");
  const open = books.holds.get(known.id);
  if (open !== undefined) {
    const charged = rules.charge(cost, open.granted, freeOf(books));
    const overHold = cost > open.granted;
    return { charged, shortfall: micros(Math.max(0, cost - charged)), late: false, overHold };
  }
  const { period } = known;
  const left =
    endUser === null ? NO_CAP : rules.quotaLeft(endUser, period, heldBy(books, endUser.id, period));
  const free = Math.min(freeOf(books), left.daily, left.monthly);
  const charged = rules.charge(cost, micros(0), free);
  return { charged, shortfall: micros(Math.max(0, cost - charged)), late: true, overHold: false };
}

/** What a settled, voided or refused id answers again; null when its outcome is still to be decided. */
function recallSettle(known: Known): Recalled | null {
  switch (known.state) {
    case "settled":
      return { charged: known.charged, shortfall: known.shortfall };
    case "voided":
      return "voided";
    case "refused":
      return "unknown";
    case "held":
    case "expired":
      return null;
  }
}

/** The balance after a credit or a correction, or why not: never over 2^53, never into what is held. */
export function decideCredit(books: Books, amount: Micros): Result<Micros> {
  const balance = books.balance + amount;
  if (!Number.isSafeInteger(balance)) {
    return refuse({
      kind: "invalid_request",
      message: "The balance would be too large.",
      param: "amount_micro",
    });
  }
  if (amount < 0 && balance < books.held) {
    return refuse({
      kind: "conflict",
      message: "The correction would take more than is free.",
      param: "amount_micro",
      code: "balance_too_low",
    });
  }
  return success(micros(balance));
}
