import { refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import type { RateLimitState } from "../../../shared/key-status.ts";
import { IDEMPOTENCY_RETENTION_MS } from "../../../shared/idempotency.ts";
import type { Session } from "../../../shared/session.ts";
import type { RequestState } from "../../../shared/contracts/wallet.ts";
import { creationTimeOfHoldId, REQUEST_ID_AGE_MAX_MS } from "./hold-ids.ts";
import { RATE_WINDOW_MS } from "../../../shared/rate-window.ts";

/**
 * Returns `overloaded` for an ID that is too old or too new, `internal` for a malformed ID, or
 * null.
 */
export function refuseInvalidHoldId(id: string, nowMs: number): Refusal | null {
  const minted = creationTimeOfHoldId(id);
  if (minted === null) return refuse({ kind: "internal" });
  return Math.abs(minted - nowMs) > REQUEST_ID_AGE_MAX_MS ? refuse({ kind: "overloaded" }) : null;
}

/** An Idempotency-Key's newest request with a granted hold. */
export type IdempotencyHolder = {
  readonly id: string;
  readonly body: string;
  readonly admittedAt: number;
  /**
   * The request's state, or null if its row was deleted. Within 24 hours, only rows of settled
   * requests are deleted.
   */
  readonly state: RequestState | null;
};

/**
 * Checks the reuse of an Idempotency-Key within 24 hours. Fails if the key's newest request is open
 * or settled. If that request expired with the same body, returns its ID for the caller to void.
 * Otherwise, returns null.
 */
export function checkIdempotencyKeyReuse(
  holder: IdempotencyHolder | null,
  body: string,
  nowMs: number,
): Result<string | null> {
  if (holder === null) return success(null);
  if (nowMs - holder.admittedAt >= IDEMPOTENCY_RETENTION_MS) return success(null);
  if (holder.state === "voided" || holder.state === "refused") return success(null);
  if (holder.state === "expired") return success(holder.body === body ? holder.id : null);
  if (holder.body !== body) return refuse({ kind: "idempotency_mismatch" });
  return holder.state === "held"
    ? refuse({ kind: "idempotency_in_progress" })
    : refuse({ kind: "idempotency_replay", made: "generation", id: holder.id });
}

export function refuseInactiveSession(
  { madeAt, cut, expiresAt }: Pick<Session, "madeAt" | "cut" | "expiresAt">,
  here: {
    readonly madeAt: number;
    readonly cut: number;
    readonly endedAt: number | null;
    readonly nowMs: number;
  },
): Refusal | null {
  const isEnded = madeAt !== here.madeAt || cut < here.cut || here.endedAt !== null;
  if (isEnded) return refuse({ kind: "invalid_api_key", isForGood: true });
  if (here.nowMs < expiresAt) return null;
  return refuse({ kind: "invalid_api_key", expiredAt: expiresAt });
}

/**
 * Times (Unix ms) of an organization's holds or a session's requests in the last minute, oldest
 * first.
 */
export type RecentRequestTimes = number[];

export function computeRateLimitState(
  log: RecentRequestTimes,
  limit: number,
  nowMs: number,
): RateLimitState {
  dropOldTimes(log, nowMs);
  const oldest = log[Math.max(0, log.length - limit)];
  const resetMs = oldest === undefined ? 0 : oldest + RATE_WINDOW_MS - nowMs;
  return { limit, remaining: Math.max(0, limit - log.length), resetMs };
}

/** Rejects a request above a rate limit. */
export function refuseOverRate(
  scope: "organization" | "session",
  { limit, remaining, resetMs: retryAfterMs }: RateLimitState,
): Refusal | null {
  return remaining > 0 ? null : refuse({ kind: "rate_limited", scope, limit, retryAfterMs });
}

export function rateWindowStartMs(nowMs: number): number {
  return nowMs - RATE_WINDOW_MS;
}

function dropOldTimes(log: RecentRequestTimes, nowMs: number): void {
  const kept = log.findIndex((at) => at > rateWindowStartMs(nowMs));
  log.splice(0, kept === -1 ? log.length : kept);
}
