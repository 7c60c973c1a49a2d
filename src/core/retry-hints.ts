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

/** What is only hinted at is not waited for longer. */
const HINT_MS_MAX = 60_000;

/** Suffixes of `x-ratelimit-reset`: OpenAI, Groq, xAI, Mistral; Cerebras; Together. */
const LIMITS = ["-requests", "-tokens", "-requests-minute", "-tokens-minute", ""];

/**
 * How long a host that said no `retry-after` seems to ask for, in ms, at most a minute; or null. Its
 * words come first ("Please retry after 6 seconds", "try again in 7.66s"), then when its limits begin
 * anew: those that are used up, else the first to do so.
 */
export function hintedWaitMs(headers: Headers, message: string): number | null {
  const said = /(?:retry after|try again in) ([\d.]+ ?(?:seconds?|ms|[\dhms.]+))/i.exec(message);
  const spoken = durationMs(said?.[1] ?? "");
  if (spoken !== null) return hinted(spoken);
  const resets: number[] = [];
  const usedUp: number[] = [];
  for (const limit of LIMITS) {
    const reset = durationMs(headers.get(`x-ratelimit-reset${limit}`) ?? "");
    if (reset === null) continue;
    resets.push(reset);
    if (headers.get(`x-ratelimit-remaining${limit}`)?.trim() === "0") usedUp.push(reset);
  }
  if (usedUp.length > 0) return hinted(Math.max(...usedUp));
  return resets.length > 0 ? hinted(Math.min(...resets)) : null;
}

const DURATION =
  /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?) ?(?:s|seconds?))?(?:(\d+(?:\.\d+)?) ?ms)?$/;
/** A bare number is seconds; a larger one is a date. */
const SECONDS_MAX = 86_400;

/** "1s", "6m0s", "1h2m", "20ms", "6 seconds", "11.5"; null for anything else. */
function durationMs(raw: string): number | null {
  const text = raw.trim().toLowerCase().replace(/\.$/, "");
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) > SECONDS_MAX ? null : Number(text) * 1000;
  const match = DURATION.exec(text);
  if (text === "" || match === null) return null;
  const [hours, minutes, seconds, ms] = match.slice(1).map((part) => Number(part ?? 0));
  return (((hours ?? 0) * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0)) * 1000 + (ms ?? 0);
}

function hinted(ms: number): number {
  return Math.min(Math.ceil(ms), HINT_MS_MAX);
}
