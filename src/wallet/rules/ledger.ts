import { assert } from "../../lib/assert.ts";
import { refuse, success } from "../../lib/failure.ts";
import type { Failure, Result } from "../../lib/failure.ts";
import { micros } from "../../lib/money.ts";
import type { Micros } from "../../lib/money.ts";
import { NOTHING, NO_CAP, addSpend, quotaLeft } from "./quota.ts";
import type { EndUser, Left, PerPeriod, Period } from "./quota.ts";

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

/** A hold that nobody has settled, voided or let expire. Times in Unix ms. */
export type OpenHold = {
  readonly id: string;
  readonly granted: Micros;
  readonly externalId: string | null;
  /** The end user it counts against; null without one. */
  readonly endUserId: string | null;
  readonly keyId: string;
  readonly admittedAt: number;
  /** The day and month of admission that its spend counts in. */
  readonly period: Period;
  readonly expiresAt: number;
};

/** The totals that decide: derived from the tables, changed only by the functions below. */
export type Books = {
  /** Sequence of the newest ledger row. */
  seq: number;
  balance: Micros;
  /** Sum of what the open holds were granted. */
  held: Micros;
  readonly holds: Map<string, OpenHold>;
  readonly holdsByEndUser: Map<string, Set<OpenHold>>;
  /** No open hold expires before this; Infinity without any. */
  nextExpiry: number;
};

export function emptyBooks(): Books {
  return {
    seq: 0,
    balance: micros(0),
    held: micros(0),
    holds: new Map(),
    holdsByEndUser: new Map(),
    nextExpiry: Infinity,
  };
}

/** What no open hold has reserved. */
export function freeOf(books: Books): Micros {
  return micros(books.balance - books.held);
}

/** What an end user's open holds reserve of a day and of a month, by their period of admission. */
export function heldBy(books: Books, endUserId: string, period: Period): PerPeriod {
  let daily = 0;
  let monthly = 0;
  for (const hold of books.holdsByEndUser.get(endUserId) ?? []) {
    if (hold.period.day === period.day) daily += hold.granted;
    if (hold.period.month === period.month) monthly += hold.granted;
  }
  return { daily: micros(daily), monthly: micros(monthly) };
}

export function openHold(books: Books, hold: OpenHold): void {
  assert(!books.holds.has(hold.id), "a hold opens once");
  books.holds.set(hold.id, hold);
  books.held = micros(books.held + hold.granted);
  assert(books.held <= books.balance, "holds never exceed the balance");
  books.nextExpiry = Math.min(books.nextExpiry, hold.expiresAt);
  if (hold.endUserId === null) return;
  const others = books.holdsByEndUser.get(hold.endUserId) ?? new Set();
  books.holdsByEndUser.set(hold.endUserId, others.add(hold));
}

/** Forgets a hold that has come to its end; one that is not open is left alone. */
export function closeHold(books: Books, id: string): void {
  const hold = books.holds.get(id);
  if (hold === undefined) return;
  books.holds.delete(id);
  books.held = micros(books.held - hold.granted);
  if (hold.endUserId === null) return;
  const others = books.holdsByEndUser.get(hold.endUserId);
  others?.delete(hold);
  if (others?.size === 0) books.holdsByEndUser.delete(hold.endUserId);
}

/** The open holds whose time is up at `nowMs`, in the order of their admission. */
export function dueHolds(books: Books, nowMs: number): OpenHold[] {
  if (nowMs < books.nextExpiry) return [];
  const due = [...books.holds.values()].filter((hold) => hold.expiresAt <= nowMs);
  books.nextExpiry = [...books.holds.values()]
    .filter((hold) => hold.expiresAt > nowMs)
    .reduce((least, hold) => Math.min(least, hold.expiresAt), Infinity);
  return due;
}
