import { cell } from "./cell.ts";

/** The time of the next call to the region, Unix ms, and 0 during it; null while it answers. */
export const nextTry = cell<number | null>(null);

const STEPS_MS = [2000, 4000, 8000, 15_000, 30_000];
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
const retries = new Set<() => boolean>();

/** Registers `retry`, which returns whether it calls, for the region's return. Returns the removal. */
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

/** Records an answer of any kind. */
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
