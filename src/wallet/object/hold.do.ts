import { numberVar } from "../../config.ts";
import { assert } from "../../lib/assert.ts";
import { invalid, refuse, success } from "../../lib/failure.ts";
import type { Failure, Refusal, Result } from "../../lib/failure.ts";
import { idFloor, mintedAt } from "../../lib/id.ts";
import { allowsModel } from "../../lib/key-terms.ts";
import type { KeyTerms } from "../../lib/key-terms.ts";
import type { Micros } from "../../lib/money.ts";
import type { Session } from "../../lib/session.ts";
import { HOLD_ID, ID_AGE_MAX_MS, decideName, rateWait, refuseId } from "../rules/hold-guards.ts";
import { decideHold, openHold, recallHold, shareOf } from "../rules/ledger.ts";
import type { EndUser } from "../rules/quota.ts";
import {
  insertName,
  insertRequest,
  numberOf,
  selectNameHolder,
  selectRequest,
  updateVoided,
} from "../tables/request-rows.do.ts";
import type { NewRequest } from "../tables/request-rows.do.ts";
import type { HoldGrant, HoldRequest } from "../../contracts/wallet.ts";
import { madeEndUser, newEndUser, storeEndUser } from "./end-users.do.ts";
import type { NewEndUser } from "./end-users.do.ts";
import { insertSession, selectSession } from "../tables/session-rows.do.ts";
import {
  budgetOfSession,
  ownAmounts,
  placeSession,
  refuseOfSession,
  refuseSessionRate,
} from "./sessions.do.ts";
import { topUpIfDue } from "./top-up.do.ts";
import { budgetOf, tokensOf } from "./key-terms.do.ts";
import { reachedByRefusal, tellReached } from "./alerts.do.ts";
import { findEndUser } from "./memory.do.ts";
import type { Desk } from "./memory.do.ts";

/** `isRepeat`: the id is known, and nothing was done but to answer as before. */
export type Held = { readonly answer: Result<HoldGrant>; readonly isRepeat: boolean };

/**
 * What a request is held by: its key's terms, and its session's. `isPlaced`: the session's minute counted it when its
 * key was admitted.
 */
export type HeldTerms = KeyTerms & {
  readonly session?: Session | undefined;
  readonly isPlaced?: boolean;
};

/** Reserves money for one request of a key with these terms, or says why not. See `WalletCalls.hold`. */
export function hold(desk: Desk, request: HoldRequest, terms: HeldTerms): Held {
  const { books, row, room } = desk.memory;
  const wrongId = refuseId(request.id, desk.clockMs);
  if (wrongId !== null) return anew(wrongId);
  if (books.holds.has(request.id)) return again(desk, request, terms);
  // A wallet whose book is another's holds nothing new, nor one that may not have the room to settle it.
  if (row.conflict !== null || room.isFull) return anew(refuse({ kind: "storage_unavailable" }));
  const amounts = [request.least, request.sure, request.most];
  assert(
    amounts.every((amount) => Number.isSafeInteger(amount)),
    "a hold is in whole micros",
  );
  const grant = guarded(desk, request, terms);
  const answer = grant.ok
    ? granted(desk, request, { ...grant.value, terms })
    : refused(desk, { ...request, externalId: userOf(request, terms) }, { terms, refusal: grant });
  return answer === null ? again(desk, request, terms) : anew(answer);
}

/** What a request that came before was answered, open or over; null for one that never came. */
export function replay(
  desk: Desk,
  request: HoldRequest,
  terms: KeyTerms,
): Result<HoldGrant> | null {
  const known = selectRequest(desk.sql, request.id);
  if (known === null) return null;
  // A key's own end user is not sent.
  const externalId = request.externalId ?? known.externalId;
  const answer = recallHold(known, { ...request, externalId });
  assert(answer !== null, "a known id has an answer");
  return answer.ok
    ? success(grantOf(desk, request, { ...known, granted: answer.value, terms }))
    : answer;
}

function again(desk: Desk, request: HoldRequest, terms: KeyTerms): Held {
  const answer = replay(desk, request, terms);
  assert(answer !== null, "a known id has a row");
  return { answer, isRepeat: true };
}

function anew(answer: Result<HoldGrant>): Held {
  return { answer, isRepeat: false };
}

/** With what is left of the key's token limit, if it has one, and what else the organisation's setting says. */
function grantOf(
  desk: Desk,
  { keyId }: HoldRequest,
  {
    granted: amount,
    tokens,
    terms,
  }: { readonly granted: Micros; readonly tokens: number | null; readonly terms: KeyTerms },
): HoldGrant {
  const { keepHours } = desk.memory.row.settings;
  const grant = { granted: amount, ...(keepHours > 0 && { keepHours }) };
  if (tokens === null || terms.tpmLimit === null) return grant;
  const state = tokensOf(desk, keyId).state(terms.tpmLimit, desk.nowMs);
  return { ...grant, tokens: { ...state, granted: tokens } };
}

/** What a hold is granted on. `lapsed`: the expired request that it repeats, which is void with the grant; or null. */
type Grant = {
  readonly payer: Payer;
  readonly granted: Micros;
  /** Of the key's token limit; null without one. */
  readonly tokens: number | null;
  readonly lapsed: string | null;
};

/**
 * The guards, in order: what the request may not ask for, then the Idempotency-Key (a repeat is one on an
 * empty balance too), then the minute, and last what it would cost. All of them only look: a hold that
 * is sent twice may be refused here as its own repeat, and its first answer is recalled then.
 */
function guarded(desk: Desk, request: HoldRequest, terms: HeldTerms): Result<Grant> {
  const { session } = terms;
  const notAllowed =
    refuseOrganization(desk, request) ?? refuseModel(request, terms) ?? refuseUser(request, terms);
  if (notAllowed !== null) return notAllowed;
  const lapsed = lapsedBy(desk, request);
  if (!lapsed.ok) return lapsed;
  const limited = refuseLimited(desk, request, terms);
  if (limited !== null) return limited;
  const tokens = tokensFor(desk, request, terms);
  if (!tokens.ok) return tokens;
  const payer = endUserFor(desk, userOf(request, terms));
  if (payer === "too_many") return refuse({ kind: "too_many_end_users" });
  const amount = decideHold(desk.memory.books, {
    ...request,
    endUser: payer?.counted ?? null,
    budget: budgetOf(desk, request.keyId, terms),
    session: budgetOfSession(desk, session),
    period: desk.period,
  });
  if (!amount.ok) return amount;
  return success({ payer, granted: amount.value, tokens: tokens.value, lapsed: lapsed.value });
}

/** What is owed, then the session's own end and minute, then the organisation's minute. */
function refuseLimited(desk: Desk, request: HoldRequest, terms: HeldTerms): Refusal | null {
  const { session } = terms;
  return (
    refuseDebtor(desk, session) ??
    refuseOfSession(desk, request, session) ??
    refuseRates(desk, terms)
  );
}

/** While payments that went back are owed, nothing is free; a session is not told how much. */
function refuseDebtor({ memory }: Desk, session: Session | undefined): Refusal | null {
  const { owed } = memory.debts;
  if (owed === 0) return null;
  return refuse({ kind: "payment_reversed", owedMicro: session === undefined ? owed : null });
}

/** A peer that does not say what it asks for may ask for nothing of a list. */
function refuseModel({ model }: HoldRequest, terms: KeyTerms): Refusal | null {
  if (terms.allowedModels === null || (model !== null && allowsModel(terms, model))) return null;
  return refuse({ kind: "model_not_allowed", model: model?.sent ?? "" });
}

/** The end user that a request is of. */
function userOf({ externalId }: HoldRequest, { endUser, session }: HeldTerms): string | null {
  return externalId ?? session?.endUser ?? endUser;
}

function refuseUser(request: HoldRequest, terms: HeldTerms): Refusal | null {
  const externalId = userOf(request, terms);
  const { endUser } = terms;
  if (externalId === null || endUser === null || externalId === endUser) return null;
  return invalid("This API key is for requests of another end user.", "user");
}

/** How many tokens of the key's minute the request gets; null for a key without a token limit. */
function tokensFor(desk: Desk, request: HoldRequest, terms: KeyTerms): Result<number | null> {
  const { tpmLimit: limit } = terms;
  if (limit === null) return success(null);
  const { prompt, least: leastOutput, most } = request.tokens;
  const least = request.hasCap ? most : leastOutput; // what the client asked for is not cut
  const share = (free: number): number => shareOf(free, request.hasCap);
  const verdict = tokensOf(desk, request.keyId).decide(limit, { least, most, share }, desk.nowMs);
  if (verdict.kind === "granted") return success(verdict.tokens);
  if (verdict.kind === "never") {
    return refuse({ kind: "tokens_over_limit", limit, prompt, required: least });
  }
  const { remaining, retryAfterMs } = verdict;
  return refuse({ kind: "tokens_limited", limit, remaining, required: least, retryAfterMs });
}

/** Before anything is decided by amounts that are not the customer's. */
function refuseOrganization({ memory }: Desk, asked: HoldRequest): Refusal | null {
  const { priceList, suspended } = memory.row;
  if (suspended) return refuse({ kind: "organization_suspended" });
  const differs = (asked.priceList ?? null) !== priceList;
  return differs ? refuse({ kind: "price_list_differs", list: priceList }) : null;
}

function lapsedBy({ sql, nowMs }: Desk, { idempotency }: HoldRequest): Result<string | null> {
  if (idempotency === null) return success(null);
  const { name, body } = idempotency;
  return decideName(selectNameHolder(sql, name, nowMs), body, nowMs);
}

/** `counted`: with the id that its open holds have now. `made`: null for an end user that is there. */
type Payer = {
  readonly user: EndUser;
  readonly counted: EndUser;
  readonly made: NewEndUser | null;
} | null;

function endUserFor(desk: Desk, externalId: string | null): Payer | "too_many" {
  if (externalId === null) return null;
  const known = findEndUser(desk, "external_id", externalId);
  if (known !== null) return { user: known, counted: known, made: null };
  const made = newEndUser(desk, externalId);
  if (made === null) return "too_many";
  const { user, departed } = made;
  return { user, counted: { ...user, id: departed?.user.id ?? user.id }, made };
}

/** The session's own minute, unless it has the request already, then the organisation's. */
function refuseRates(desk: Desk, { session, isPlaced }: HeldTerms): Refusal | null {
  const ofSession = isPlaced === true ? null : refuseSessionRate(desk, session);
  return ofSession ?? refuseRate(desk);
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
function granted(
  desk: Desk,
  request: HoldRequest,
  { payer, granted: amount, tokens, lapsed, terms }: Grant & { readonly terms: HeldTerms },
): Result<HoldGrant> | null {
  const { memory, nowMs } = desk;
  const ttlSeconds = numberVar(desk.env, request.peer ? "PEER_HOLD_TTL_S" : "HOLD_TTL_S");
  const expiresAt = nowMs + ttlSeconds * 1000;
  const endUserId = payer?.user.id ?? null;
  const floorId = floorFor(desk, request.id);
  const { id, keyId } = request;
  const externalId = payer?.user.externalId ?? null;
  const session = terms.session?.id ?? null;
  const row = {
    request: { ...request, externalId },
    key: numberOf(desk.sql, memory.names, keyId),
    session,
    granted: amount,
    tokens,
    endUserId,
    expiresAt,
  };
  const firstUse = firstUseOf(desk, terms);
  if (!storeGrant(desk, row, { payer, lapsed, floorId, firstUse })) return null;
  memory.floorId = floorId;
  if (payer !== null && payer.made !== null) madeEndUser(desk, payer.made);
  openHold(memory.books, {
    id,
    granted: amount,
    externalId,
    endUserId,
    keyId,
    session,
    admittedAt: nowMs,
    period: desk.period,
    expiresAt,
  });
  if (tokens !== null) tokensOf(desk, keyId).add(id, nowMs, tokens);
  noteRates(desk, terms, firstUse);
  memory.routine++;
  return success(grantOf(desk, request, { granted: amount, tokens, terms }));
}

/** Memory of the organisation's and the session's minutes follows the grant. */
function noteRates(desk: Desk, { session, isPlaced }: HeldTerms, firstUse: Session | null): void {
  const { memory, nowMs } = desk;
  if (memory.row.rpmLimit !== null) memory.rateLog.push(nowMs);
  if (firstUse !== null) {
    memory.sessions.rows++;
    memory.sessions.live++;
  }
  if (isPlaced !== true) placeSession(desk, session);
}

/** The session, where the tables have not met it; null otherwise. */
function firstUseOf({ sql }: Desk, { session }: HeldTerms): Session | null {
  return session === undefined || selectSession(sql, session.id) !== null ? null : session;
}

type GrantedRow = Pick<
  NewRequest,
  "key" | "granted" | "tokens" | "session" | "endUserId" | "expiresAt"
> & {
  readonly request: HoldRequest;
};
type Beside = Pick<Grant, "payer" | "lapsed"> & {
  readonly floorId: string;
  readonly firstUse: Session | null;
};

/** The hold's row and what must change with it; false, and nothing stored, when the id is known. */
function storeGrant(
  desk: Desk,
  row: GrantedRow,
  { payer, lapsed, floorId, firstUse }: Beside,
): boolean {
  const { memory, nowMs, sql } = desk;
  const { id, idempotency } = row.request;
  const made = payer?.made ?? null;
  const write = (): boolean => {
    // Before its first request, which names it by its number.
    if (made !== null) {
      if (selectRequest(sql, id) !== null) return false;
      storeEndUser(desk, made);
    }
    const held = { ...row, admittedAt: nowMs, period: desk.period, state: "held" as const };
    if (!insertRequest(sql, { ...held, failure: null })) return false;
    if (firstUse !== null) insertSession(sql, firstUse, row.request.keyId);
    if (idempotency !== null) insertName(sql, idempotency, { id, admittedAt: nowMs });
    if (lapsed !== null) updateVoided(sql, lapsed, nowMs);
    if (floorId !== memory.floorId) lowerFloor(sql, floorId);
    return true;
  };
  const isOneRow =
    idempotency === null && made === null && firstUse === null && floorId === memory.floorId;
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

/** Tells of a limit that is reached; the rest, `remember` says. A session hears of its own amounts alone. */
function refused(
  desk: Desk,
  request: HoldRequest,
  { terms: { session }, refusal }: { readonly terms: HeldTerms; readonly refusal: Refusal },
): Refusal | null {
  const failure = toppedUp(desk, refusal.failure, ownAmounts(desk, refusal.failure, session));
  const answer = remember(desk, request, refuse(failure));
  const asked = { ...request, sessionId: session?.id ?? null };
  const reached = answer === null ? null : reachedByRefusal(desk, refusal.failure, asked);
  if (reached !== null) tellReached(desk, reached);
  return answer;
}

/** A refusal for want of balance wants an automatic purchase; a session is not told of it. */
function toppedUp(desk: Desk, failure: Failure, told: Failure): Failure {
  if (failure.kind !== "balance_too_low" || failure.onlyHolds) return told;
  const purchaseId = topUpIfDue(desk, true);
  if (purchaseId === null || told.kind !== "balance_too_low" || told.session === true) return told;
  return { ...told, purchaseId };
}

/** A refusal: at home it writes nothing, at a peer's request it is remembered. Null when the id is known. */
function remember(desk: Desk, request: HoldRequest, refusal: Refusal): Refusal | null {
  if (selectRequest(desk.sql, request.id) !== null) return null;
  // nor is what is asked again at once, under the same id
  if (!request.peer || refusal.failure.kind === "price_list_differs") return refusal;
  insertRequest(desk.sql, {
    request,
    key: numberOf(desk.sql, desk.memory.names, request.keyId),
    state: "refused",
    granted: null,
    tokens: null,
    endUserId: null,
    admittedAt: desk.nowMs,
    period: desk.period,
    expiresAt: desk.nowMs,
    failure: refusal.failure,
  });
  return refusal;
}
