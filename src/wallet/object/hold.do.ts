import { numberVar } from "../../config.ts";
import { assert } from "../../lib/assert.ts";
import { refuse, success } from "../../lib/failure.ts";
import type { Refusal, Result } from "../../lib/failure.ts";
import { idFloor, mintedAt } from "../../lib/id.ts";
import type { Micros } from "../../lib/money.ts";
import { HOLD_ID, ID_AGE_MAX_MS, decideName, rateWait, refuseId } from "../rules/hold-guards.ts";
import { RULES, decideHold, openHold } from "../rules/ledger.ts";
import { noSpend } from "../rules/quota.ts";
import type { EndUser } from "../rules/quota.ts";
import { insertEndUser } from "../tables/end-user-rows.do.ts";
import {
  insertName,
  insertRequest,
  selectNameHolder,
  selectRequest,
  updateVoided,
} from "../tables/request-rows.do.ts";
import type { NewRequest } from "../tables/request-rows.do.ts";
import type { HoldGrant, HoldRequest } from "../wallet-contract.ts";
import { findEndUser, nextRevision } from "./memory.do.ts";
import type { Desk } from "./memory.do.ts";

export const END_USERS_MAX = 100_000;

/** `isRepeat`: the id is known, and nothing was done but to answer as before. */
export type Held = { readonly answer: Result<HoldGrant>; readonly isRepeat: boolean };

/** Reserves money for one request, or says why not. See `WalletCalls.hold`. */
export function hold(desk: Desk, request: HoldRequest): Held {
  const { books, row, room } = desk.memory;
  const wrongId = refuseId(request.id, desk.clockMs);
  if (wrongId !== null) return anew(wrongId);
  if (books.holds.has(request.id)) return { answer: recall(desk, request), isRepeat: true };
  // A wallet whose book is another's holds nothing new, nor one that may not have the room to settle it.
  if (row.conflict !== null || room.isFull) return anew(refuse({ kind: "storage_unavailable" }));
  assert(
    Number.isSafeInteger(request.least) && Number.isSafeInteger(request.most),
    "a hold is in whole micros",
  );
  const terms = termsOf(desk, request);
  const answer = terms.ok ? grant(desk, request, terms.value) : remember(desk, request, terms);
  return answer === null ? { answer: recall(desk, request), isRepeat: true } : anew(answer);
}

/** What a request that came before was answered, open or over; null for one that never came. */
export function replay(desk: Desk, request: HoldRequest): Result<HoldGrant> | null {
  return selectRequest(desk.sql, request.id) === null ? null : recall(desk, request);
}

function anew(answer: Result<HoldGrant>): Held {
  return { answer, isRepeat: false };
}

/** What a hold is granted on. `lapsed`: the expired request that it repeats, which is void with the grant; or null. */
type Terms = {
  readonly payer: Payer;
  readonly granted: Micros;
  readonly lapsed: string | null;
};

/**
 * Suspended, then the Idempotency-Key, then the rate limit and what it would cost: a repeat is one on an empty balance too.
 * A hold that is sent twice may be refused here as its own repeat: its first answer is recalled then.
 */
function termsOf(desk: Desk, request: HoldRequest): Result<Terms> {
  if (desk.memory.row.suspended) return refuse({ kind: "organization_suspended" });
  const lapsed = lapsedBy(desk, request);
  if (!lapsed.ok) return lapsed;
  const limited = refuseRate(desk);
  if (limited !== null) return limited;
  const payer = endUserFor(desk, request.externalId);
  if (payer === "too_many") return refuse({ kind: "too_many_end_users" });
  const granted = decideHold(desk.memory.books, {
    least: request.least,
    most: request.most,
    endUser: payer?.user ?? null,
    period: desk.period,
  });
  return granted.ok ? success({ payer, granted: granted.value, lapsed: lapsed.value }) : granted;
}

function lapsedBy({ sql, nowMs }: Desk, { idempotency }: HoldRequest): Result<string | null> {
  if (idempotency === null) return success(null);
  const { name, body } = idempotency;
  return decideName(selectNameHolder(sql, name, nowMs), body, nowMs);
}

type Payer = { readonly user: EndUser; readonly isNew: boolean } | null;

function endUserFor(desk: Desk, externalId: string | null): Payer | "too_many" {
  if (externalId === null) return null;
  const known = findEndUser(desk, "external_id", externalId);
  if (known !== null) return { user: known, isNew: false };
  if (desk.memory.endUsers >= END_USERS_MAX) return "too_many";
  const { dailyQuota, monthlyQuota, alertThreshold } = desk.memory.row.settings;
  const user = {
    id: crypto.randomUUID(),
    externalId,
    dailyQuota,
    monthlyQuota,
    alertThreshold,
    createdAt: desk.nowMs,
    spend: noSpend(desk.period),
  };
  return { user, isNew: true };
}

/** The organisation's own rate limit, if it has one. */
function refuseRate({ memory, nowMs }: Desk): Refusal | null {
  const limit = memory.row.rpmLimit;
  if (limit === null) return null;
  const retryAfterMs = rateWait(memory.rateLog, limit, nowMs);
  if (retryAfterMs <= 0) return null;
  return refuse({ kind: "rate_limited", scope: "organization", limit, retryAfterMs });
}

/** Stores and applies a grant; null, and nothing changed, when the id is known. */
function grant(
  desk: Desk,
  request: HoldRequest,
  { payer, granted, lapsed }: Terms,
): Result<HoldGrant> | null {
  const { memory, nowMs } = desk;
  const ttlSeconds = numberVar(desk.env, request.peer ? "PEER_HOLD_TTL_S" : "HOLD_TTL_S");
  const expiresAt = nowMs + ttlSeconds * 1000;
  const endUserId = payer?.user.id ?? null;
  const floorId = floorFor(desk, request.id);
  const row = { request, granted, endUserId, expiresAt };
  if (!storeGrant(desk, row, { payer, lapsed, floorId })) return null;
  memory.floorId = floorId;
  const { id, externalId, keyId } = request;
  openHold(memory.books, {
    id,
    granted,
    externalId,
    endUserId,
    keyId,
    admittedAt: nowMs,
    period: desk.period,
    expiresAt,
  });
  if (memory.row.rpmLimit !== null) memory.rateLog.push(nowMs);
  if (payer?.isNew === true) {
    memory.endUsers += 1;
    memory.unpublished.add(payer.user.id);
  }
  memory.changed = true;
  return success({ granted });
}

type GrantedRow = Pick<NewRequest, "granted" | "endUserId" | "expiresAt"> & {
  readonly request: HoldRequest;
};
type Beside = Pick<Terms, "payer" | "lapsed"> & { readonly floorId: string };

/** The hold's row and what must change with it; false, and nothing stored, when the id is known. */
function storeGrant(desk: Desk, row: GrantedRow, { payer, lapsed, floorId }: Beside): boolean {
  const { memory, nowMs, sql } = desk;
  const { id, idempotency } = row.request;
  const times = { admittedAt: nowMs, period: desk.period };
  const write = (): boolean => {
    // Before its first request, which names it by its number.
    if (payer?.isNew === true) {
      if (selectRequest(sql, id) !== null) return false;
      insertEndUser(sql, payer.user, nextRevision(desk));
    }
    if (!insertRequest(sql, { ...row, ...times, state: "held", failure: null })) return false;
    if (idempotency !== null) insertName(sql, idempotency, { id, admittedAt: nowMs });
    if (lapsed !== null) updateVoided(sql, lapsed, nowMs);
    if (floorId !== memory.floorId) lowerFloor(sql, floorId);
    return true;
  };
  const isOneRow = idempotency === null && payer?.isNew !== true && floorId === memory.floorId;
  // One statement is a transaction by itself; a savepoint around it would cost two more.
  return isOneRow ? write() : desk.storage.transactionSync(write);
}

/** The promise that later ledger rows have no smaller id must hold after a clock that stepped back. */
function floorFor(desk: Desk, id: string): string {
  if (id >= desk.memory.floorId) return desk.memory.floorId;
  return idFloor(HOLD_ID, (mintedAt(id, HOLD_ID) ?? 0) - ID_AGE_MAX_MS);
}

function lowerFloor(sql: SqlStorage, floorId: string): void {
  sql.exec("UPDATE checkpoints SET floor_id = ? WHERE floor_id > ?", floorId, floorId);
}

/** A refusal: at home it writes nothing, at a peer's request it is remembered. Null when the id is known. */
function remember(desk: Desk, request: HoldRequest, refusal: Refusal): Refusal | null {
  if (selectRequest(desk.sql, request.id) !== null) return null;
  if (!request.peer) return refusal;
  insertRequest(desk.sql, {
    request,
    state: "refused",
    granted: null,
    endUserId: null,
    admittedAt: desk.nowMs,
    period: desk.period,
    expiresAt: desk.nowMs,
    failure: refusal.failure,
  });
  return refusal;
}

function recall(desk: Desk, request: HoldRequest): Result<HoldGrant> {
  const known = selectRequest(desk.sql, request.id);
  assert(known !== null, "a known id has a row");
  const answer = RULES.recallHold(known, request);
  assert(answer !== null, "a known id has an answer");
  return answer.ok ? success({ granted: answer.value }) : answer;
}
