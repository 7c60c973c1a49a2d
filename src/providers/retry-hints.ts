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
  if (spoken !== null) return bounded(spoken);
  const resets: number[] = [];
  const usedUp: number[] = [];
  for (const limit of LIMITS) {
    const reset = durationMs(headers.get(`x-ratelimit-reset${limit}`) ?? "");
    if (reset === null) continue;
    resets.push(reset);
    if (headers.get(`x-ratelimit-remaining${limit}`)?.trim() === "0") usedUp.push(reset);
  }
  if (usedUp.length > 0) return bounded(Math.max(...usedUp));
  return resets.length > 0 ? bounded(Math.min(...resets)) : null;
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

function bounded(ms: number): number {
  return Math.min(Math.ceil(ms), HINT_MS_MAX);
}
