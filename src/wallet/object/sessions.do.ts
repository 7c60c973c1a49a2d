import { timestamp } from "../../lib/clock.ts";
import { invalid, refuse, success } from "../../lib/failure.ts";
import type { Refusal, Result } from "../../lib/failure.ts";
import { allowsModel } from "../../lib/key-terms.ts";
import type { RateState } from "../../lib/key-terms.ts";
import { micros } from "../../lib/money.ts";
import type { Micros } from "../../lib/money.ts";
import type { Session } from "../../lib/session.ts";
import { sessionBudget } from "../rules/key-limits.ts";
import type { Budget } from "../rules/key-limits.ts";
import { rateState, rateWait, refuseDeadSession } from "../rules/hold-guards.ts";
import { heldOfKey } from "../rules/ledger.ts";
import { addEvent } from "../tables/event-rows.do.ts";
import {
  addSessionSpend,
  deleteSessions,
  endSession,
  noteSessionRate,
  selectLiveSessions,
  selectSession,
} from "../tables/session-rows.do.ts";
import type { SessionRow } from "../tables/session-rows.do.ts";
import type {
  HoldRequest,
  SessionEnding,
  SessionPage,
  SessionQuery,
  UsedSession,
} from "../wallet-contract.ts";
import type { Desk } from "./memory.do.ts";

/** Sessions of an organisation that are kept at a time, used or ended: each is a row for some days. */
const SESSIONS_MAX = 50_000;

/** See `refuseDeadSession`: whether a session lives here. */
export function refuseSession({ sql, memory, clockMs }: Desk, session: Session): Refusal | null {
  const endedAt = selectSession(sql, session.id)?.endedAt ?? null;
  return refuseDeadSession(session, { madeAt: memory.row.madeAt, endedAt, nowMs: clockMs });
}

/** What a session's own terms refuse of a request, before money: its models, its end user, its place. */
export function refuseOfSession(
  desk: Desk,
  { model, externalId }: HoldRequest,
  session: Session | undefined,
): Refusal | null {
  if (session === undefined) return null;
  const { allowedModels, endUser } = session;
  if (allowedModels !== null && (model === null || !allowsModel(session, model))) {
    return refuse({ kind: "model_not_allowed", model: model?.sent ?? "" });
  }
  if (endUser !== null && externalId !== null && externalId !== endUser) {
    return invalid("This session is for requests of another end user.", "user");
  }
  return refuseAnother(desk, session);
}

/** Null while one more request fits the session's own minute. */
export function refuseSessionRate(
  { memory, nowMs }: Desk,
  session: Session | undefined,
): Refusal | null {
  const limit = session?.rpmLimit ?? null;
  if (session === undefined || limit === null) return null;
  const retryAfterMs = rateWait(memory.sessions.rates.get(session.id) ?? [], limit, nowMs);
  if (retryAfterMs <= 0) return null;
  return refuse({ kind: "rate_limited", scope: "session", limit, retryAfterMs });
}

/** What is left of a session's own minute; null without one. */
export function sessionRate(
  { memory, nowMs }: Desk,
  session: Session | undefined,
): RateState | null {
  if (session === undefined || session.rpmLimit === null) return null;
  return rateState(memory.sessions.rates.get(session.id) ?? [], session.rpmLimit, nowMs);
}

/** A request of a session that took a place in its key's minute takes one in the session's own. */
export function placeSession({ memory, nowMs }: Desk, session: Session | undefined): void {
  if (session === undefined || session.rpmLimit === null) return;
  noteSessionRate(memory.sessions, session.id, nowMs);
}

/** Null while there is room for one more session, or for one that was used before. */
function refuseAnother({ sql, memory }: Desk, session: Session): Refusal | null {
  const isFull = memory.sessions.count >= SESSIONS_MAX && selectSession(sql, session.id) === null;
  const message = `At most ${SESSIONS_MAX} sessions of an organization in use within some days.`;
  return isFull
    ? refuse({ kind: "conflict", message, param: null, code: "too_many_sessions" })
    : null;
}

/** A session's budget with what it has spent of it; null without a session. One that is gone has none left. */
export function budgetOfSession(
  desk: Desk,
  session: Session | string | null | undefined,
): Budget | null {
  if (session === null || session === undefined) return null;
  const id = typeof session === "string" ? session : session.id;
  const row = selectSession(desk.sql, id);
  const terms = typeof session === "string" ? (row?.session ?? null) : session;
  const budgetMicro = terms === null ? micros(0) : terms.budgetMicro;
  const total = desk.memory.sessions.spent.get(id) ?? row?.spent ?? micros(0);
  return sessionBudget({ id, budgetMicro }, total, desk.period);
}

/** Adds a charge to the spend of its session, if it has one. */
export function chargeSession(
  { sql, memory }: Desk,
  posted: { readonly session?: string | null; readonly charged: Micros },
): void {
  addSessionSpend(sql, memory.sessions, posted);
}

/** See `WalletCalls.sessions`. */
export function listSessions(desk: Desk, { owner, limit, after }: SessionQuery): SessionPage {
  const { clockMs, sql } = desk;
  const rows = selectLiveSessions(sql, owner, { nowMs: clockMs, limit: limit + 1, after });
  const sessions = rows.slice(0, limit).flatMap((row) => usedOf(desk, row));
  return {
    sessions,
    nextAfter: rows.length > limit ? (sessions.at(-1)?.session.id ?? null) : null,
  };
}

function usedOf(desk: Desk, { keyId, session, spent }: SessionRow): UsedSession[] {
  if (session === null || keyId === null) return [];
  const { books, sessions } = desk.memory;
  const held = heldOfKey(books, { keyId: session.id, budgetPeriod: null }, desk.period);
  return [{ keyId, session, spentMicro: sessions.spent.get(session.id) ?? spent, heldMicro: held }];
}

/** See `WalletCalls.endSession`. */
export function endSessionBy(desk: Desk, ending: SessionEnding): Result<null> {
  const { sql, memory, clockMs } = desk;
  const { id, owner, actor } = ending;
  const known = selectSession(sql, id);
  const isTheirs =
    known === null || known.keyId === null ? ending.isOwn : isOf(desk, known.keyId, owner);
  if (!isTheirs) return refuse({ kind: "not_found", message: "No such session." });
  if (known === null && memory.sessions.count >= 2 * SESSIONS_MAX) {
    return refuse({ kind: "overloaded" });
  }
  const expiresAt = known?.expiresAt ?? ending.expiresAt;
  desk.storage.transactionSync(() => {
    if (!endSession(sql, id, { endedAt: clockMs, expiresAt })) return;
    const data = { ended_at: timestamp(clockMs) };
    addEvent(desk, { type: "session.ended", actor, subject: id, data }, [id]);
  });
  if (known === null) memory.sessions.count++;
  return success(null);
}

function isOf({ sql }: Desk, keyId: string, owner: SessionQuery["owner"]): boolean {
  if (owner.keyId !== null) return owner.keyId === keyId;
  if (owner.memberId === null) return true;
  const [row] = sql.exec<{ member_id: string }>(
    "SELECT member_id FROM keys WHERE key_id = ?",
    keyId,
  );
  return row?.member_id === owner.memberId;
}

/** Forgets a batch of the sessions that have long been over; true when there may be more. */
export function deleteOldSessions(
  { sql, memory }: Desk,
  beforeMs: number,
  rowsMax: number,
): boolean {
  if (memory.sessions.count === 0) return false;
  const gone = deleteSessions(sql, beforeMs, rowsMax);
  memory.sessions.count -= gone;
  return gone >= rowsMax;
}
