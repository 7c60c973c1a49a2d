import { assert } from "../../../shared/assert.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import type { Period } from "../../../shared/period.ts";
import type { HoldPurpose } from "../../../shared/placed-hold.ts";

/** A hold that isn't settled, voided or expired. Times are Unix ms. */
export type OpenHold = {
  readonly id: string;
  readonly granted: Micros;
  readonly externalId: string | null;
  readonly endUserId: string | null;
  readonly keyId: string;
  readonly session?: string | null;
  readonly tokens?: number | null;
  /**
   * Models that the hold covers. Set only if budgets exist or the hold doesn't cover all requested
   * models.
   */
  readonly models?: readonly string[] | null;
  readonly admittedAt: number;
  readonly period: Period;
  readonly expiresAt: number;
  readonly purpose?: HoldPurpose | null;
};

/** The balance and the open holds. Only this file changes the holds. */
export type HoldTotals = {
  seq: number;
  balance: Micros;
  held: Micros;
  readonly holds: Map<string, OpenHold>;
  nextExpiry: number;
};

export function createHoldTotals(): HoldTotals {
  return {
    seq: 0,
    balance: micros(0),
    held: micros(0),
    holds: new Map(),
    nextExpiry: Infinity,
  };
}

/** Returns the balance minus open holds. */
export function freeBalance(ledger: HoldTotals): Micros {
  return micros(ledger.balance - ledger.held);
}

/**
 * Counts the running requests of a key, or of all keys if `keyId` is null. Excludes holds placed by
 * clients.
 */
export function countRunningRequests(ledger: HoldTotals, keyId: string | null): number {
  let running = 0;
  for (const { keyId: ofHold, purpose = null } of ledger.holds.values()) {
    if (purpose === null && (keyId === null || ofHold === keyId)) running++;
  }
  return running;
}

/** Reports whether a hold counts only against quotas. */
export function isQuotaHold({ purpose = null }: Pick<OpenHold, "purpose">): boolean {
  return purpose?.pays === "quota";
}

function amountFromBalance(hold: OpenHold): Micros {
  return isQuotaHold(hold) ? micros(0) : hold.granted;
}

export function addOpenHold(ledger: HoldTotals, hold: OpenHold): void {
  assert(!ledger.holds.has(hold.id), "a hold opens once");
  ledger.holds.set(hold.id, hold);
  ledger.held = micros(ledger.held + amountFromBalance(hold));
  assert(ledger.held <= ledger.balance, "holds never exceed the balance");
  ledger.nextExpiry = Math.min(ledger.nextExpiry, hold.expiresAt);
}

/** Assigns a deleted end user's holds to the new end user with the same external ID. */
export function moveHoldsToEndUser({ holds }: HoldTotals, fromId: string, toId: string): void {
  for (const hold of holds.values()) {
    if (hold.endUserId === fromId) holds.set(hold.id, { ...hold, endUserId: toId });
  }
}

export function extendOpenHold(ledger: HoldTotals, id: string, expiresAt: number): void {
  const hold = ledger.holds.get(id);
  assert(hold !== undefined, "only an open hold is extended");
  removeOpenHold(ledger, id);
  addOpenHold(ledger, { ...hold, expiresAt });
}

export function removeOpenHold(ledger: HoldTotals, id: string): void {
  const hold = ledger.holds.get(id);
  if (hold === undefined) return;
  ledger.holds.delete(id);
  ledger.held = micros(ledger.held - amountFromBalance(hold));
}

export function findDueHolds(ledger: HoldTotals, nowMs: number): OpenHold[] {
  if (nowMs < ledger.nextExpiry) return [];
  const due = [...ledger.holds.values()].filter((hold) => hold.expiresAt <= nowMs);
  ledger.nextExpiry = [...ledger.holds.values()]
    .filter((hold) => hold.expiresAt > nowMs)
    .reduce((least, hold) => Math.min(least, hold.expiresAt), Infinity);
  return due;
}
