const WINDOW_MS = 60_000;

/** The organisation's granted holds of the last minute, oldest first, Unix ms. */
export type RateLog = number[];

/** 0 when one more fits at `nowMs`, else the ms after which it will: never over `limit` in any 60 s. */
export function rateWait(log: RateLog, limit: number, nowMs: number): number {
  forget(log, nowMs);
  const oldest = log[log.length - limit];
  return oldest === undefined ? 0 : oldest + WINDOW_MS - nowMs;
}

/** The moment before which an admission no longer counts at `nowMs`. */
export function rateFloor(nowMs: number): number {
  return nowMs - WINDOW_MS;
}

function forget(log: RateLog, nowMs: number): void {
  const kept = log.findIndex((at) => at > nowMs - WINDOW_MS);
  log.splice(0, kept === -1 ? log.length : kept);
}
