import type { Failure, Refusal } from "../../../shared/failure.ts";
import { refuse } from "../../../shared/failure.ts";
import type { HoldRequest } from "../../../shared/contracts/wallet.ts";
import type { Meter } from "../rules/limits.ts";
import { selectEndUser } from "../tables/end-user-rows.do.ts";
import { getOrInsertName, insertRequest, selectRequest } from "../tables/request-rows.do.ts";
import { selectSession } from "../tables/session-rows.do.ts";
import { emitBudgetRejection, emitSpendLimitReached } from "./budget-events.do.ts";
import type { ReachedSpendLimit } from "./budget-events.do.ts";
import { syncAndReadMeters } from "./hold-checks.do.ts";
import type { HoldTerms } from "./hold-checks.do.ts";
import type { Tx } from "./memory.do.ts";
import { withSessionAmounts } from "./sessions.do.ts";
import { startTopUpIfDue } from "./top-up.do.ts";

/**
 * Returns the failure for the client, or null if the request ID exists. A session's error includes
 * only the session's own amounts.
 */
export function rejectHold(
  tx: Tx,
  request: HoldRequest,
  { terms, refusal }: { readonly terms: HoldTerms; readonly refusal: Refusal },
): Refusal | null {
  const { session } = terms;
  const failure = withTopUp(tx, refusal.failure, withSessionAmounts(tx, refusal.failure, session));
  const answer = storeRejection(tx, request, refuse(failure));
  const requested = { ...request, sessionId: session?.id ?? null };
  const reached = answer === null ? null : findReachedSpendLimit(tx, refusal.failure, requested);
  if (reached !== null) emitSpendLimitReached(tx, reached);
  if (answer !== null && refusal.failure.kind === "budget_exceeded") {
    emitBudgetRejection(tx, refusal.failure, rejectedMeters(tx, request, terms));
  }
  return answer;
}

function rejectedMeters(tx: Tx, request: HoldRequest, terms: HoldTerms): readonly Meter[] {
  const { externalId } = request;
  const user = externalId === null ? null : selectEndUser(tx.sql, "external_id", externalId);
  return syncAndReadMeters(tx, request, {
    terms,
    payer: user === null ? null : { user, made: null },
  });
}

/** Starts a due top-up and adds its purchase ID to the failure. A session's error omits the ID. */
function withTopUp(tx: Tx, failure: Failure, reported: Failure): Failure {
  if (failure.kind !== "balance_too_low" || failure.onlyHolds) return reported;
  const purchaseId = startTopUpIfDue(tx, true);
  if (purchaseId === null || reported.kind !== "balance_too_low" || reported.session === true) {
    return reported;
  }
  return { ...reported, purchaseId };
}

/** Failures after which the caller retries with the same ID. */
const CORRECTABLE_FAILURES: ReadonlySet<Failure["kind"]> = new Set([
  "price_list_differs",
  "candidates_required",
]);

function storeRejection(tx: Tx, request: HoldRequest, refusal: Refusal): Refusal | null {
  if (selectRequest(tx.sql, request.id) !== null) return null;
  // Stores rejections of a peer's requests, unless the peer then retries with the same ID.
  if (!request.peer || CORRECTABLE_FAILURES.has(refusal.failure.kind)) return refusal;
  const { sql, memory, nowMs: admittedAt, period } = tx;
  const { keyId, externalId } = request;
  const row = {
    key: getOrInsertName(sql, memory.names, keyId),
    tokens: null,
    failure: refusal.failure,
  };
  const never = { granted: null, externalId, endUserId: null, admittedAt, period };
  insertRequest(sql, { ...row, state: "refused" }, request, { ...never, expiresAt: admittedAt });
  return refusal;
}

/**
 * Returns the used-up limit that rejected a request, or null if only open holds caused the
 * rejection. Also returns null for unused sessions and unknown end users, whose names clients can
 * invent.
 */
function findReachedSpendLimit(
  tx: Tx,
  failure: Failure,
  request: {
    readonly keyId: string;
    readonly externalId: string | null;
    readonly sessionId: string | null;
  },
): ReachedSpendLimit | null {
  const { period: now, sql } = tx;
  if (failure.kind === "quota_exceeded" && !failure.onlyHolds && request.externalId !== null) {
    if (selectEndUser(tx.sql, "external_id", request.externalId) === null) return null;
    const { period, quotaMicro: limit, leftMicro: left } = failure;
    const type = "end_user.quota_reached";
    return { type, subject: request.externalId, period, since: now[period], limit, left };
  }
  if (failure.kind !== "key_budget_exceeded" || failure.onlyHolds) return null;
  const { period, budgetMicro: limit, leftMicro: left } = failure;
  const since = period === null ? null : now[period];
  if (failure.session !== true) {
    return { type: "key.budget_reached", subject: request.keyId, period, since, limit, left };
  }
  const { sessionId: subject } = request;
  if (subject === null || selectSession(sql, subject) === null) return null;
  return { type: "session.budget_reached", subject, period, since, limit, left };
}
