import { assert } from "../../../shared/assert.ts";
import type { Budget } from "../../../shared/budgets.ts";
import { timestamp } from "../../../shared/clock.ts";
import { conflict, refuse, success } from "../../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../../shared/failure.ts";
import type { RateLimitState } from "../../../shared/key-status.ts";
import { micros } from "../../../shared/money.ts";
import { CLOCK_LAG_MAX_MS } from "../../../shared/rate-window.ts";
import type { Session } from "../../../shared/session.ts";
import {
  meterAmountsAt,
  dollarFieldLimit,
  isDollarFieldLimit,
  createMeterWithoutHolds,
} from "../rules/limits.ts";
import type { Meter } from "../rules/limits.ts";
import {
  computeRateLimitState,
  refuseInactiveSession,
  refuseOverRate,
} from "../rules/hold-guards.ts";
import { metersOfOwner, peekMeters } from "./budget-memory.do.ts";
import { addEvent } from "./event-log.do.ts";
import { deleteSessionBudgets } from "../tables/budget-rows.do.ts";
import {
  insertEndedUnusedSession,
  countEndedUnusedSessions,
  deleteExpiredSessions,
  markSessionEnded,
  recordSessionRequest,
  selectActiveSessions,
  isSessionOwner,
  selectSession,
} from "../tables/session-rows.do.ts";
import type { SessionRow } from "../tables/session-rows.do.ts";
import type {
  SessionEndRequest,
  SessionPage,
  SessionQuery,
  SessionWithSpend,
} from "../../../shared/contracts/wallet.ts";
import type { Tx } from "./memory.do.ts";
import { endPausesOfDeletedOwner } from "./pauses.do.ts";

const SESSIONS_MAX = 50_000;
const UNUSED_ENDS_MAX = 1000;

/**
 * Rejects an invalid session. `cut` is the number of the last rotation that ended all earlier
 * sessions.
 */
export function refuseInvalidSession(
  { sql, memory, clockMs }: Tx,
  session: Session,
  cut: number,
): Refusal | null {
  const endedAt = selectSession(sql, session.id)?.endedAt ?? null;
  const { madeAt } = memory.row;
  return refuseInactiveSession(session, { madeAt, cut, endedAt, nowMs: clockMs });
}

export function refuseOverSessionRate(tx: Tx, session: Session | undefined): Refusal | null {
  const state = readSessionRateState(tx, session);
  return state === null ? null : refuseOverRate("session", state);
}

export function readSessionRateState(
  { memory, nowMs }: Tx,
  session: Session | undefined,
): RateLimitState | null {
  if (session === undefined || session.rpmLimit === null) return null;
  const log = memory.sessions.rates.get(session.id) ?? [];
  return computeRateLimitState(log, session.rpmLimit, nowMs);
}

export function countSessionRequest({ memory, nowMs }: Tx, session: Session | undefined): void {
  if (session === undefined || session.rpmLimit === null) return;
  recordSessionRequest(memory.sessions, session.id, nowMs);
}

export function refuseTooManySessions(
  { sql, memory }: Tx,
  session: Session | undefined,
): Refusal | null {
  if (session === undefined || memory.sessions.live < SESSIONS_MAX) return null;
  if (selectSession(sql, session.id) !== null) return null;
  const message = `An organization can't use more than ${SESSIONS_MAX} sessions within a few days.`;
  return conflict(message, null, "too_many_sessions");
}

/** Returns a session's meters, `budget_dollars` first. */
export function metersOfSession(
  tx: Tx,
  { id, budgetMicro, budgets }: Session,
  metersOf = metersOfOwner,
): readonly Meter[] {
  const owner = { scope: "session", subject: id } as const;
  if (selectSession(tx.sql, id) !== null) return metersOf(tx, owner);
  const field = dollarFieldLimit(owner, "total", { amount: budgetMicro, tally: [] });
  const entry = (budget: Budget): Meter => createMeterWithoutHolds({ ...field, budget });
  return [createMeterWithoutHolds(field), ...(budgets ?? []).map(entry)];
}

/**
 * Returns a session's amounts. Doesn't cache its meters, because only checkpoints evict cached
 * meters.
 */
export function readSessionAmounts(tx: Tx, session: Session) {
  const spends = metersOfSession(tx, session, peekMeters).filter(isDollarFieldLimit);
  const [amounts] = spends.map((meter) => meterAmountsAt(meter, tx));
  assert(amounts !== undefined, "a session's spend is counted");
  const { settled, held, left } = amounts;
  return { spentMicro: micros(settled), heldMicro: micros(held), left };
}

/** Replaces the key's or organization's amounts in a failure with the session's amounts. */
export function withSessionAmounts(
  tx: Tx,
  failure: Failure,
  session: Session | undefined,
): Failure {
  if (session === undefined) return failure;
  const isOthers =
    failure.kind === "balance_too_low" ||
    (failure.kind === "budget_exceeded" && !["session", "end_user"].includes(failure.scope)) ||
    (failure.kind === "key_budget_exceeded" && failure.session !== true);
  if (!isOthers) return failure;
  const { heldMicro, left } = readSessionAmounts(tx, session);
  return {
    kind: "balance_too_low",
    session: true,
    balanceMicro: micros(session.budgetMicro === null ? 0 : Math.max(0, left)),
    heldMicro,
    requiredMicro: failure.kind === "budget_exceeded" ? micros(0) : failure.requiredMicro,
    onlyHolds: failure.onlyHolds,
  };
}

export function listSessions(tx: Tx, { owner, limit, after }: SessionQuery): SessionPage {
  const { clockMs, sql } = tx;
  const rows = selectActiveSessions(sql, owner, { nowMs: clockMs, limit: limit + 1, after });
  const sessions = rows.slice(0, limit).flatMap((row) => usedSessions(tx, row));
  return {
    sessions,
    nextAfter: rows.length > limit ? (sessions.at(-1)?.session.id ?? null) : null,
  };
}

function usedSessions(tx: Tx, { keyId, session }: SessionRow): SessionWithSpend[] {
  if (session === null || keyId === null) return [];
  const { spentMicro, heldMicro } = readSessionAmounts(tx, session);
  return [{ keyId, session, spentMicro, heldMicro }];
}

export function endSessionForCaller(tx: Tx, ending: SessionEndRequest): Result<null> {
  const { sql, memory, clockMs } = tx;
  const { id, owner, actor } = ending;
  const known = selectSession(sql, id);
  const isUsed = known !== null && known.keyId !== null;
  if (!(isUsed ? isSessionOwner(sql, known.keyId, owner) : ending.isOwn)) {
    return refuse({ kind: "not_found", message: "No such session." });
  }
  endPausesOfDeletedOwner(tx, { scope: "session", subject: id });
  if (known === null) return endUnusedSession(tx, ending);
  if (!isUsed) return success(null);
  tx.storage.transactionSync(() => {
    if (!markSessionEnded(sql, id, clockMs)) return;
    memory.sessions.live--;
    const data = { ended_at: timestamp(clockMs) };
    addEvent(tx, { type: "session.ended", actor, subject: id, data }, [id]);
  });
  return success(null);
}

/** Ends an unused session. A caller can end only a limited number, because sessions are free. */
function endUnusedSession(
  { sql, memory, clockMs: endedAt }: Tx,
  { id, expiresAt, actor }: SessionEndRequest,
): Result<null> {
  const { rows, live } = memory.sessions;
  const by = `${actor.kind} ${actor.id}`;
  if (rows - live >= SESSIONS_MAX || countEndedUnusedSessions(sql, by) >= UNUSED_ENDS_MAX) {
    const message = `An organization can't end more than ${UNUSED_ENDS_MAX} unused sessions a day. Rotate the key with end_sessions to end all of them.`;
    return conflict(message, null, "too_many_sessions");
  }
  const expiry = { expires_at: expiresAt, ended_at: endedAt };
  insertEndedUnusedSession(sql, { id, ended_by: by, ...expiry });
  memory.sessions.rows++;
  return success(null);
}

export function deleteOldSessions(
  { sql, memory, nowMs }: Tx,
  beforeMs: number,
  rowsMax: number,
): boolean {
  const { sessions } = memory;
  if (sessions.rows === 0 && !sessions.hasOldBudgets) return false;
  const over = { usedMs: beforeMs, unusedMs: nowMs - CLOCK_LAG_MAX_MS, rowsMax };
  const deleted = deleteExpiredSessions(sql, sessions, over);
  if (deleted > 0 || sessions.hasOldBudgets) {
    sessions.hasOldBudgets = deleteSessionBudgets(sql, rowsMax) >= rowsMax;
  }
  return deleted >= rowsMax || sessions.hasOldBudgets;
}
