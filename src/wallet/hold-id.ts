import { mintedAt } from "../lib/id.ts";
import { refuse } from "../lib/failure.ts";
import type { Refusal } from "../lib/failure.ts";

/** Prefix of a hold's id, which is the request's id. */
export const HOLD_ID = "req_";

/** How far from now a hold may have been minted: an older one could be a late duplicate. */
export const ID_AGE_MAX_MS = 120_000;

/** A clock that lags the newest time seen by more than this is a jump, not jitter between machines. */
export const CLOCK_LAG_MAX_MS = 60_000;

/**
 * Null when a new hold may have this id at `nowMs`, else why not. Too old or too new asks for a new id: a late
 * duplicate, or clocks of ours that differ. No id at all is a bug.
 */
export function refuseId(id: string, nowMs: number): Refusal | null {
  const minted = mintedAt(id, HOLD_ID);
  if (minted === null) return refuse({ kind: "internal" });
  return Math.abs(minted - nowMs) > ID_AGE_MAX_MS ? refuse({ kind: "overloaded" }) : null;
}
