import { cell } from "./cell.ts";

/** When the region is asked again, Unix ms, and 0 while it is; null while it answers. */
export const nextTry = cell<number | null>(null);

const STEPS_MS = [2000, 4000, 8000, 15_000, 30_000];
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
const retries = new Set<() => boolean>();

/** Calls `retry`, which says whether it asks, when a region that was away is asked again. Returns how to stop that. */
export function onRetry(retry: () => boolean): () => void {
  retries.add(retry);
  return () => retries.delete(retry);
}

/** A call had no answer: all that is shown is read again after a while, later each time. */
export function lostConnection(): void {
  if (timer !== undefined) return;
  const wait = STEPS_MS[Math.min(failures, STEPS_MS.length - 1)] ?? 0;
  failures += 1;
  nextTry.set(Date.now() + wait);
  timer = setTimeout(tryNow, wait);
}

/** A call had an answer, whatever it said. */
export function foundConnection(): void {
  failures = 0;
  stopWaiting(null);
}

export function tryNow(): void {
  stopWaiting(0);
  const asks = [...retries].filter((retry) => retry());
  if (asks.length === 0) nextTry.set(null);
}

function stopWaiting(next: number | null): void {
  clearTimeout(timer);
  timer = undefined;
  nextTry.set(next);
}
