import type { Budget, BudgetOwner } from "../../../shared/budgets.ts";
import { timestamp } from "../../../shared/clock.ts";
import { SYSTEM_ACTOR } from "../../../shared/event.ts";
import type { Actor } from "../../../shared/event.ts";
import { conflict, invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { mintId } from "../../../shared/id.ts";
import { CLOCK_LAG_MAX_MS } from "../../../shared/rate-window.ts";
import { PAUSES_MAX } from "../../../shared/pauses.ts";
import type { PauseWithOwner, Pause } from "../../../shared/pauses.ts";
import type {
  NewPause,
  PauseEndRequest,
  PauseReader,
  PutPauseResult,
} from "../../../shared/contracts/pauses.ts";
import {
  pauseEndMs,
  isEarlierPauseEnd,
  refuseToEndOperatorPause,
  pauseRuleName,
  indexPausesByName,
} from "../rules/pauses.ts";
import type { PausesByName } from "../rules/pauses.ts";
import { selectEndUser, selectExternalId } from "../tables/end-user-rows.do.ts";
import { selectSessionCutsByKey } from "../tables/key-rows.do.ts";
import { putRule } from "../tables/policy-pause-rows.do.ts";
import { isSessionOwner, selectSession } from "../tables/session-rows.do.ts";
import { addEvent } from "./event-log.do.ts";
import { nextPublishRevision, assertCurrentInstance } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";

export function putPause(tx: Tx, newPause: NewPause): Result<PutPauseResult> {
  const { scope, source, reason, until, actor: createdBy } = newPause;
  const subject = subjectOf(tx, newPause);
  if (!subject.ok) return subject;
  const { memory, nowMs } = tx;
  const owner = { scope, subject: subject.value };
  const known = memory.pauses.byName.get(pauseRuleName({ ...owner, source }));
  const wrong = refusePause(tx, known, newPause);
  if (wrong !== null) return wrong;
  const { id, createdAt } = known ?? { id: mintId("pau_", nowMs), createdAt: nowMs };
  const stopRunning = newPause.stopRunning || known?.stopRunning === true;
  const stops = stopRunning ? { stopRunning } : {};
  const made = { id, source, reason, until, ...stops, createdBy, createdAt };
  const pause: Pause = { ...owner, ...made, ...sessionEnd(tx, owner, newPause.session) };
  const isSame =
    known?.reason === reason &&
    known.until === until &&
    (known.stopRunning === true) === stopRunning;
  if (!isSame) storePause(tx, pause);
  return success({ ...withOwnerName(tx, isSame ? known : pause), created: known === undefined });
}

function refusePause(
  { memory, nowMs }: Tx,
  known: Pause | undefined,
  { scope, source, until }: NewPause,
): Refusal | null {
  if (until !== null && until <= nowMs) {
    const message = `until must be in the future. The current time is ${timestamp(nowMs)}.`;
    return invalid(message, "until");
  }
  if (known !== undefined && isEarlierPauseEnd(known, until)) {
    const end = known.until === null ? "" : ` until ${timestamp(known.until)}`;
    const message = `Requests are already paused${end}. End that pause before you create a shorter one.`;
    return conflict(message, "until");
  }
  if (known !== undefined || scope === "organization") return null;
  if (!hasPausesMax(memory.pauses, source)) return null;
  const message = `An organization can't have more than ${PAUSES_MAX} pauses. End other pauses first.`;
  return conflict(message, null, "too_many_pauses");
}

function hasPausesMax({ byName }: PausesByName, source: Pause["source"]): boolean {
  return [...byName.values()].filter((one) => one.source === source).length >= PAUSES_MAX;
}

function subjectOf(tx: Tx, { scope, id, session }: NewPause): Result<string> {
  if (scope === "session") {
    const known = selectSession(tx.sql, id);
    const keyId = known?.keyId ?? null;
    const isOwned =
      session !== undefined &&
      (keyId === null ? session.isOwn : isSessionOwner(tx.sql, keyId, session.owner));
    return isOwned && !isOwnerGone(tx, { scope, subject: id })
      ? success(id)
      : refuseUnknown("session");
  }
  if (scope !== "end_user") return success(id);
  const user = selectEndUser(tx.sql, "external_id", id);
  return user === null ? refuseUnknown("end user") : success(user.id);
}

/** Returns the end of a pause's session, plus a margin for clocks that lag. */
function sessionEnd(
  { sql }: Tx,
  { scope, subject }: BudgetOwner,
  unused?: NewPause["session"],
): Pick<Pause, "sessionEndsAt"> {
  if (scope !== "session") return {};
  const endsAt = selectSession(sql, subject)?.expiresAt ?? unused?.expiresAt;
  return endsAt === undefined ? {} : { sessionEndsAt: endsAt + CLOCK_LAG_MAX_MS };
}

/**
 * Reports whether a key was revoked or a session ended. The wallet doesn't know about removed
 * members.
 */
function isOwnerGone(
  { sql }: Tx,
  { scope, subject }: BudgetOwner,
  ended = selectSessionCutsByKey(sql),
): boolean {
  if (scope === "key") return ended.get(subject) === Infinity;
  const session = scope === "session" ? selectSession(sql, subject) : null;
  if (session === null) return false;
  const cut = session.session?.cut ?? Infinity;
  return session.endedAt !== null || cut < (ended.get(session.keyId ?? "") ?? 0);
}

function refuseUnknown(noun: string): Refusal {
  return refuse({ kind: "not_found", message: `No such ${noun}.` });
}

/** Pauses a used-up budget's owner if `onExceeded` is "pause". */
export function pauseBudgetOwner(
  tx: Tx,
  { scope, subject, budget }: BudgetOwner & BudgetPart,
): void {
  const { memory, nowMs: createdAt } = tx;
  const { byName } = memory.pauses;
  const owner = { scope, subject, source: "budget" } as const;
  if (budget.onExceeded !== "pause") return;
  if (scope !== "organization" && hasPausesMax(memory.pauses, "budget")) return;
  if (byName.has(pauseRuleName(owner)) || isOwnerGone(tx, owner)) return;
  const id = mintId("pau_", createdAt);
  const reason = "A budget is used up";
  const made = { until: null, createdBy: SYSTEM_ACTOR, createdAt, budgetId: budget.id };
  storePause(tx, { ...owner, id, reason, ...made, ...sessionEnd(tx, owner) });
}

type BudgetPart = { readonly budget: Budget };

function storePause(tx: Tx, pause: Pause): void {
  const { memory, sql, storage } = tx;
  const { id, scope, source, reason, until, createdBy: actor } = pause;
  const name = pauseRuleName(pause);
  storage.transactionSync(() => {
    putRule(sql, name, pause, nextPublishRevision(tx));
    const end = until === null ? null : timestamp(until);
    const stops = pause.stopRunning === true;
    const data = {
      scope,
      ...endUserEventField(tx, pause),
      pause_id: id,
      source,
      reason,
      until: end,
      stop_running: stops,
      ...(pause.budgetId !== undefined && { budget_id: pause.budgetId }),
    };
    addEvent(tx, { type: "pause.created", actor, subject: eventSubject(tx, pause), data });
  });
  const others = [...memory.pauses.byName.values()].filter((one) => one.id !== id);
  memory.pauses = indexPausesByName([...others, pause]);
  memory.hasChanges = true;
}

/** Returns the subject of events of budgets and pauses: an ID, never an end user's external ID. */
export function eventSubject({ memory }: Tx, { scope, subject }: BudgetOwner): string {
  return scope === "organization" ? memory.row.orgId : subject;
}

/**
 * Returns an end user's external ID as an event's field, because the event's subject is only the
 * ID.
 */
export function endUserEventField(
  { sql }: Tx,
  { scope, subject }: BudgetOwner,
): { readonly end_user?: string } {
  const externalId = scope === "end_user" ? selectExternalId(sql, subject) : null;
  return externalId === null ? {} : { end_user: externalId };
}

export function listPauses(tx: Tx, reader: PauseReader | null): Result<readonly PauseWithOwner[]> {
  assertCurrentInstance(tx);
  return success(
    [...tx.memory.pauses.byName.values()]
      .filter((pause) => reader === null || canRead(tx, pause, reader))
      .toSorted((one, other) => one.createdAt - other.createdAt)
      .map((pause) => withOwnerName(tx, pause)),
  );
}

function canRead(tx: Tx, { scope, subject }: Pause, { memberId, keyIds }: PauseReader): boolean {
  switch (scope) {
    case "organization":
      return true;
    case "member":
      return subject === memberId;
    case "key":
      return keyIds.includes(subject);
    case "session":
      return keyIds.includes(selectSession(tx.sql, subject)?.keyId ?? "");
    case "end_user":
      return false;
  }
}

export function endPause(tx: Tx, { id, source, actor }: PauseEndRequest): Result<PauseWithOwner> {
  const pause = [...tx.memory.pauses.byName.values()].find((one) => one.id === id);
  if (pause === undefined) return refuseUnknown("pause");
  if (pause.source === "operator" && source !== "operator") return refuseToEndOperatorPause();
  const ended = withOwnerName(tx, pause);
  endPauses(tx, [pause], { cause: "removed", actor });
  return success(ended);
}

const isOwnedBy = ({ scope, subject }: BudgetOwner, pause: Pause): boolean =>
  pause.scope === scope && pause.subject === subject;

/**
 * Rejects the deletion of a paused end user, because a new end user with the same external ID would
 * not be paused.
 */
export function refuseDeletingPausedOwner(tx: Tx, owner: BudgetOwner): Refusal | null {
  if (![...tx.memory.pauses.byName.values()].some((pause) => isOwnedBy(owner, pause))) return null;
  const message = "This end user is paused. End the pause before you delete the end user.";
  return conflict(message);
}

/** Ends the pauses of a deleted owner, and of all revoked keys and ended sessions. */
export function endPausesOfDeletedOwner(tx: Tx, owner: BudgetOwner): void {
  const all = [...tx.memory.pauses.byName.values()];
  if (all.length === 0) return;
  const ended = selectSessionCutsByKey(tx.sql);
  const own = all.filter((pause) => isOwnedBy(owner, pause) || isOwnerGone(tx, pause, ended));
  if (own.length > 0) endPauses(tx, own, { cause: "deleted", actor: SYSTEM_ACTOR });
}

/** Ends due pauses. Runs before each decision. */
export function endDuePauses(tx: Tx): void {
  const { memory, nowMs } = tx;
  if (nowMs < memory.pauses.until) return;
  const due = [...memory.pauses.byName.values()].filter((pause) => pauseEndMs(pause) <= nowMs);
  const isExpired = ({ until }: Pause): boolean => (until ?? Infinity) <= nowMs;
  endPauses(tx, due.filter(isExpired), { cause: "expired", actor: SYSTEM_ACTOR });
  const others = due.filter((pause) => !isExpired(pause));
  endPauses(tx, others, { cause: "deleted", actor: SYSTEM_ACTOR });
}

function endPauses(
  tx: Tx,
  ended: readonly Pause[],
  { cause, actor }: { readonly cause: string; readonly actor: Actor },
): void {
  const { memory, sql, storage } = tx;
  storage.transactionSync(() => {
    for (const pause of ended) {
      putRule(sql, pauseRuleName(pause), null, nextPublishRevision(tx));
      const { scope, id } = pause;
      const data = { scope, ...endUserEventField(tx, pause), pause_id: id, cause };
      addEvent(tx, { type: "pause.ended", actor, subject: eventSubject(tx, pause), data });
    }
  });
  const left = [...memory.pauses.byName.values()].filter((one) => !ended.includes(one));
  memory.pauses = indexPausesByName(left);
  memory.hasChanges = true;
}

function withOwnerName(tx: Tx, pause: Pause): PauseWithOwner {
  const { scope, subject } = pause;
  const isUser = scope === "end_user";
  const user = isUser ? selectEndUser(tx.sql, "id", subject) : null;
  return { pause, name: user?.externalId ?? eventSubject(tx, pause) };
}
