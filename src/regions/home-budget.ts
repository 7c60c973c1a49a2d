/** How long a client waits for its key's home in all before it is told 503; the contract is 2.5 s. */
const PATIENCE_MS = 2300;
const CALL_MS_MAX = 2000;
/** Whatever was spent before: a home that is well answers within this, also across an ocean. */
const CALL_MS_MIN = 200;

/**
 * What one call to home may take, its retry included, when the request has waited `spentMs` already:
 * for a key's first use here, which asks home too, and for outcomes that had to go first.
 */
export function homeBudgetMs(spentMs: number): number {
  return Math.min(CALL_MS_MAX, Math.max(CALL_MS_MIN, PATIENCE_MS - spentMs));
}
