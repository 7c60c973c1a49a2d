/** The longest wait in ms for a key's home before a client gets 503; the contract is 2.5 s. */
const PATIENCE_MS = 2300;
const CALL_MS_MAX = 2000;
const CALL_MS_MIN = 200;

/**
 * Returns the budget in ms of a call to home with its retry, after `spentMs` of waiting: for a key's first
 * use here, and for outcomes that had to go first.
 */
export function homeBudgetMs(spentMs: number): number {
  return Math.min(CALL_MS_MAX, Math.max(CALL_MS_MIN, PATIENCE_MS - spentMs));
}
