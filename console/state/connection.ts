import { cell } from "./cell.ts";

/** When the region is asked again, Unix ms; null while it answers. */
export const nextTry = cell<number | null>(null);

const STEPS_MS = [2000, 4000, 8000, 15_000, 30_000];
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
const retries = new Set<() => void>();

/** Calls `retry` when the region is asked again after it was away. Returns how to stop that. */
export function onRetry(retry: () => void): () => void {
  retries.add(retry);
  return () => retries.delete(retry);
}

/** A call had no answer: all that is shown is read again after a while, later each time. */
export function lostConnection(): void {
  if (nextTry.get() !== null) return;
  const wait = STEPS_MS[Math.min(failures, STEPS_MS.length - 1)] ?? 0;
  failures += 1;
  nextTry.set(Date.now() + wait);
  timer = setTimeout(tryNow, wait);
}

/** A call had an answer, whatever it said. */
export function foundConnection(): void {
  failures = 0;
  clearTimeout(timer);
  nextTry.set(null);
}

export function tryNow(): void {
  clearTimeout(timer);
  nextTry.set(null);
  for (const retry of retries) retry();
}
