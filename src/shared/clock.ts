type ClockBindings = { readonly SANDBOX?: string; readonly CLOCK_OFFSET_MS?: string };

/** Returns the current time (Unix ms). In the sandbox, CLOCK_OFFSET_MS shifts it. */
export function now(bindings: ClockBindings): number {
  if (bindings.CLOCK_OFFSET_MS === undefined || bindings.SANDBOX !== "on") return Date.now();
  const offsetMs = Number(bindings.CLOCK_OFFSET_MS);
  return Date.now() + (Number.isSafeInteger(offsetMs) ? offsetMs : 0);
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
export const WEEK_MS = 7 * DAY_MS;

/**
 * Returns the machine's time (Unix ms), for measuring durations. Unlike `now`, tests can't set it.
 */
export function elapsedMs(): number {
  return Date.now();
}

/** Formats Unix ms as ISO 8601 in UTC. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
