import { creationTimeOfId, lowestIdAt } from "../../../shared/id.ts";

/** Prefix of hold IDs, which are request IDs. */
const HOLD_ID_PREFIX = "req_";

/** Maximum age of a request ID in ms. Older requests can be late duplicates. */
export const REQUEST_ID_AGE_MAX_MS = 120_000;

export function creationTimeOfHoldId(id: string): number | null {
  return creationTimeOfId(id, HOLD_ID_PREFIX);
}

export function lowestHoldIdAt(createdMs: number): string {
  return lowestIdAt(HOLD_ID_PREFIX, createdMs);
}

/** Returns a lower bound for the IDs of holds that were admitted from `sinceMs` on. */
export function lowestHoldIdSince(sinceMs: number): string {
  return lowestHoldIdAt(sinceMs - REQUEST_ID_AGE_MAX_MS);
}

/** Returns an ID above those of all holds that were admitted before `beforeMs`. */
export function holdIdBound(beforeMs: number): string {
  return lowestHoldIdAt(beforeMs + REQUEST_ID_AGE_MAX_MS);
}
