/** The bindings that time may depend on: an offset for tests, honored only while the sandbox is on. */
type ClockBindings = { readonly SANDBOX?: string; readonly CLOCK_OFFSET_MS?: string };

/** The one clock: Unix milliseconds, shifted by CLOCK_OFFSET_MS only while SANDBOX is "on". */
export function now(bindings: ClockBindings): number {
  if (bindings.CLOCK_OFFSET_MS === undefined || bindings.SANDBOX !== "on") return Date.now();
  const offsetMs = Number(bindings.CLOCK_OFFSET_MS);
  return Date.now() + (Number.isSafeInteger(offsetMs) ? offsetMs : 0);
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
export const WEEK_MS = 7 * DAY_MS;

/** Milliseconds for measuring waits that really pass: never shifted. */
export function elapsedMs(): number {
  return Date.now();
}

/** ISO 8601 UTC, as every timestamp of the interface. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}
