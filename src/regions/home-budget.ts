/** Maximum ms to wait for the home region before a 503. The documented limit is 2.5 s. */
const HOME_WAIT_MAX_MS = 2300;
const CALL_MS_MAX = 2000;
const CALL_MS_MIN = 200;

/** Returns the ms that remain for a call and its retry if the request has taken `spentMs`. */
export function homeCallBudgetMs(spentMs: number): number {
  return Math.min(CALL_MS_MAX, Math.max(CALL_MS_MIN, HOME_WAIT_MAX_MS - spentMs));
}
