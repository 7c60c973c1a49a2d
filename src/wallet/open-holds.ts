import { assert } from "../lib/assert.ts";
import { micros } from "../lib/money.ts";
import type { Micros } from "../lib/money.ts";
import type { Period } from "./periods.ts";
import type { PerPeriod } from "./quota.ts";

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
