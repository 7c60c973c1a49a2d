import type { DeliveryAttempt } from "../../shared/contracts/deliveries.ts";
import { refuse } from "../../shared/failure.ts";
import type { Refusal } from "../../shared/failure.ts";

const RETRIES_MS: readonly number[] = [
  5_000,
  5 * 60_000,
  30 * 60_000,
  2 * 3_600_000,
  5 * 3_600_000,
  10 * 3_600_000,
  10 * 3_600_000,
  10 * 3_600_000,
  10 * 3_600_000,
];
/**
 * Ms to pause a webhook, by its number of failures. After the pause, one message tests the
 * receiver.
 */
const PAUSES_MS = [5_000, 30_000, 2 * 60_000, 5 * 60_000] as const;
const PAUSE_MAX_MS = 15 * 60_000;
const RETRY_AFTER_MAX_MS = 3_600_000;
/** Ms of continuous failures after which a webhook is disabled. */
const FAILING_MAX_MS = 5 * 86_400_000;
/** The error of a delivery that isn't repeated because the receiver could count its rows twice. */
export const REPEAT_UNSAFE_ERROR = "repeat_unsafe";
export const WEBHOOK_RESPONSE_BYTES_MAX = 1024;

/** Returns the next attempt's time (Unix ms), or null after the last. */
export function retryTime(attempts: number, nowMs: number): number | null {
  const delayMs = RETRIES_MS[attempts - 1];
  return delayMs === undefined ? null : nowMs + delayMs;
}

/** Returns the pause in ms. A longer `retry-after` extends the pause, up to an hour. */
export function webhookPauseMs(failures: number, retryAfterMs: number | null): number {
  const scheduledMs = PAUSES_MS[failures - 1] ?? PAUSE_MAX_MS;
  return Math.max(scheduledMs, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}

/** Parses a `retry-after` header (RFC 9110, 10.2.3) to ms. */
function parseRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const ms = header.endsWith("GMT") ? Date.parse(header) - nowMs : Number.NaN;
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

export function reasonToDisable(
  attempt: DeliveryAttempt,
  { failingSince, nowMs }: { readonly failingSince: number; readonly nowMs: number },
): "gone" | "failing" | null {
  if (attempt.status === 410) return "gone";
  const shouldDisable =
    attempt.error === REPEAT_UNSAFE_ERROR || nowMs - failingSince >= FAILING_MAX_MS;
  return shouldDisable ? "failing" : null;
}

/** Sends a message without following redirects. Never throws. */
export async function attemptDelivery(
  url: string,
  message: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
  clock: { readonly timeoutMs: number; readonly elapsed: () => number; readonly nowMs: number },
): Promise<DeliveryAttempt> {
  const { timeoutMs, elapsed, nowMs } = clock;
  const startedMs = elapsed();
  const abortController = new AbortController();
  const { signal } = abortController;
  const timer = setTimeout(() => abortController.abort(), timeoutMs);
  let retryAfterMs: number | null = null;
  const result = (status: number | null, error: string | null, answer = ""): DeliveryAttempt => ({
    status,
    error,
    answer,
    durationMs: elapsed() - startedMs,
    retryAfterMs,
  });
  try {
    const { headers, body } = message;
    const response = await fetch(url, {
      method: "POST",
      headers,
      body,
      redirect: "manual",
      signal,
    });
    const answer = await firstBytes(response);
    const { status } = response;
    if (status >= 200 && status < 300) return result(status, null, answer);
    retryAfterMs = parseRetryAfter(response.headers.get("retry-after"), nowMs);
    if (status >= 300 && status < 400) return result(status, "redirected", answer);
    return result(status, `status_${status}`, answer);
  } catch {
    return result(null, signal.aborted ? "timeout" : "unreachable");
  } finally {
    clearTimeout(timer); // a running timer would keep the object in memory
  }
}

async function firstBytes(response: Response): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const bytes = new Uint8Array(WEBHOOK_RESPONSE_BYTES_MAX);
  let length = 0;
  while (length < bytes.length) {
    const { done, value } = await reader.read();
    if (done) break;
    const chunk = (value as Uint8Array).subarray(0, bytes.length - length);
    bytes.set(chunk, length);
    length += chunk.length;
  }
  await reader.cancel().catch(() => undefined);
  return new TextDecoder().decode(bytes.subarray(0, length));
}

export function deliveryNotFound(): Refusal {
  return refuse({ kind: "not_found", message: "No such delivery." });
}

export function refuseDisabled(): Refusal {
  const message = "This webhook is disabled. Enable it first.";
  return refuse({ kind: "conflict", message, param: null, code: "webhook_disabled" });
}
