import { refuse, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { IDEMPOTENCY_MS } from "../lib/idempotency.ts";
import type { RequestState } from "./ledger.ts";

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
