import { createCell } from "./cell.ts";

/**
 * Time (Unix ms) of the next call to an unresponsive region. 0 during the call, null while the
 * region responds.
 */
export const nextRetryAt = createCell<number | null>(null);

const STEPS_MS = [2000, 4000, 8000, 15_000, 30_000];
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
const retries = new Set<() => boolean>();

/**
 * Registers a function that retries calls and reports whether there were any. Returns a function
 * that unregisters it.
 */
export function onRetry(retry: () => boolean): () => void {
  retries.add(retry);
  return () => retries.delete(retry);
}

/** Records a call without a response. Schedules retries with increasing delays. */
export function reportLostConnection(): void {
  if (timer !== undefined) return;
  const wait = STEPS_MS[Math.min(failures, STEPS_MS.length - 1)] ?? 0;
  failures += 1;
  nextRetryAt.set(Date.now() + wait);
  timer = setTimeout(retryNow, wait);
}

/** Records a response, and ends the retries. */
export function reportConnection(): void {
  failures = 0;
  stopTimer(null);
}

export function retryNow(): void {
  stopTimer(0);
  const startedRetries = [...retries].filter((retry) => retry());
  if (startedRetries.length === 0) nextRetryAt.set(null);
}

function stopTimer(next: number | null): void {
  clearTimeout(timer);
  timer = undefined;
  nextRetryAt.set(next);
}
