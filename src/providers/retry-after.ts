/** Longer waits are a host saying "not today"; failover decides for itself then. */
const WAIT_MS_MAX = 3_600_000;

/**
 * How long the upstream asks to be left alone, in ms, or null. Milliseconds before seconds before a
 * date (RFC 9110 10.2.3); a date is read against the answer's own `date`, so no clock is needed.
 */
export function retryAfterMs(headers: Headers): number | null {
  for (const name of ["retry-after-ms", "x-ms-retry-after-ms"]) {
    const wait = bounded(number(headers.get(name)));
    if (wait !== null) return wait;
  }
  const value = headers.get("retry-after");
  const seconds = number(value);
  if (seconds !== null) return bounded(seconds * 1000);
  const until = Date.parse(value ?? "");
  const said = Date.parse(headers.get("date") ?? "");
  return bounded(until - said);
}

function number(text: string | null): number | null {
  if (text === null || !/^\s*\d+(\.\d+)?\s*$/.test(text)) return null;
  return Number(text);
}

function bounded(ms: number | null): number | null {
  if (ms === null || Number.isNaN(ms)) return null;
  return Math.min(Math.max(0, Math.ceil(ms)), WAIT_MS_MAX);
}
