import { micros } from "../../src/lib/money.ts";
import type { KnownHold } from "../../src/wallet/rules/ledger.ts";
import { periodOf } from "../../src/lib/period.ts";

/** What a void leaves of an id that was never held. */
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
