import { micros } from "../../src/shared/money.ts";
import type { KnownHold } from "../../src/money/wallet/rules/ledger.ts";
import { periodOf } from "../../src/shared/period.ts";

/** Returns the record that a void leaves for an ID without a hold. */
export function tombstone(id: string, now: number): KnownHold {
  const nothing = micros(0);
  return {
    id,
    state: "voided",
    least: nothing,
    most: nothing,
    externalId: null,
    endUserId: null,
    keyId: "",
    admittedAt: now,
    period: periodOf(now),
    granted: null,
    tokens: null,
    charged: nothing,
    shortfall: nothing,
    failure: null,
  };
}
