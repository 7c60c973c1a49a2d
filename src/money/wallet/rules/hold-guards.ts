import { refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { mintedAt } from "../../../shared/id.ts";
import type { RateState } from "../../../shared/key-terms.ts";
import { IDEMPOTENCY_MS } from "../../../shared/idempotency.ts";
import type { Session } from "../../../shared/session.ts";
import type { RequestState } from "../../../shared/contracts/wallet.ts";
import { WINDOW_MS } from "../../../shared/rate-window.ts";

/** Prefix of a hold's id, which is the request's id. */
export const HOLD_ID = "req_";

/** How far from now a hold may have been minted: an older one could be a late duplicate. */
export const ID_AGE_MAX_MS = 120_000;

/**
 * Null when a new hold may have this id at `nowMs`, else why not. Too old or too new asks for a new id: a late
 * duplicate, or clocks of ours that differ. No id at all is a bug.
 */
export function refuseId(id: string, nowMs: number): Refusal | null {
  const minted = mintedAt(id, HOLD_ID);
  if (minted === null) return refuse({ kind: "internal" });
  return Math.abs(minted - nowMs) > ID_AGE_MAX_MS ? refuse({ kind: "overloaded" }) : null;
}

/** The newest request that was granted under an Idempotency-Key. */
export type NameHolder = {
  readonly id: string;
  /** The hash of its body. */
  readonly body: string;
  readonly admittedAt: number;
  /** Null when its row is gone: only a paid one's can go within the key's day. */
  readonly state: RequestState | null;
};

/**
 * Whether a request may run under an Idempotency-Key. Yes, with the id of a request to void first, or
 * null: a lost one that expired may still be charged late, and must not once its repeat runs in its place,
 * whatever becomes of that: should the repeat be voided, neither is charged. Another body is another
 * request: it may have the key of an expired one, which is charged when it comes, and remembered no more.
 * Refused while the first request is held, and for 24 hours from its admission once it was settled.
 */
export function decideName(
  holder: NameHolder | null,
  body: string,
  nowMs: number,
): Result<string | null> {
  if (holder === null) return success(null);
  if (nowMs - holder.admittedAt >= IDEMPOTENCY_MS) return success(null);
  if (holder.state === "voided" || holder.state === "refused") return success(null);
  if (holder.state === "expired") return success(holder.body === body ? holder.id : null);
  if (holder.body !== body) return refuse({ kind: "idempotency_mismatch" });
  return holder.state === "held"
    ? refuse({ kind: "idempotency_in_progress" })
    : refuse({ kind: "idempotency_replay", made: "generation", id: holder.id });
}

/**
 * Null for a session that lives here; `invalid_api_key` when it is over, was ended, by itself or with all that its key
 * had, or is another wallet's.
 */
export function refuseDeadSession(
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

/** The organization's granted holds of the last minute, oldest first, Unix ms. */
export type RateLog = number[];

/** 0 when one more fits at `nowMs`, else the ms after which it will: never over `limit` in any 60 s. */
export function rateWait(log: RateLog, limit: number, nowMs: number): number {
  forget(log, nowMs);
  const oldest = log[log.length - limit];
  return oldest === undefined ? 0 : oldest + WINDOW_MS - nowMs;
}

/** What is left of such a minute at `nowMs`, and in how many ms more will be. */
export function rateState(log: RateLog, limit: number, nowMs: number): RateState {
  forget(log, nowMs);
  const oldest = log[Math.max(0, log.length - limit)];
  const resetMs = oldest === undefined ? 0 : Math.max(1, oldest + WINDOW_MS - nowMs);
  return { limit, remaining: Math.max(0, limit - log.length), resetMs };
}

/** The moment before which an admission no longer counts at `nowMs`. */
export function rateFloor(nowMs: number): number {
  return nowMs - WINDOW_MS;
}

function forget(log: RateLog, nowMs: number): void {
  const kept = log.findIndex((at) => at > nowMs - WINDOW_MS);
  log.splice(0, kept === -1 ? log.length : kept);
}
