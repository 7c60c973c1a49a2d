import { numberVar } from "../../../shared/config/config.ts";
import { assert } from "../../../shared/assert.ts";
import { refuse, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { copyHoldPurpose } from "../../../shared/placed-hold.ts";
import type { StoredHoldPurpose } from "../../../shared/placed-hold.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import type { Session } from "../../../shared/session.ts";
import { refuseInvalidHoldId } from "../rules/hold-guards.ts";
import { creationTimeOfHoldId, lowestHoldIdSince } from "../rules/hold-ids.ts";
import { decideHold, findStoredHoldResult } from "../rules/ledger.ts";
import {
  checkRequestCountBudgets,
  collectDollarLimits,
  decideTokensWithinBudgets,
} from "../rules/limits.ts";
import { isQuotaHold, addOpenHold } from "../rules/open-holds.ts";
import type { OpenHold } from "../rules/open-holds.ts";
import { decideWithFallbacks, findBoundsForRetry, findRoutesForRetry } from "../rules/policies.ts";
import type { AllowedRequest } from "../rules/policies.ts";
import {
  insertIdempotencyKey,
  insertRequest,
  getOrInsertName,
  selectRequest,
  markHoldVoided,
} from "../tables/request-rows.do.ts";
import type { HoldGrant, HoldRequest } from "../../../shared/contracts/wallet.ts";
import {
  listRequestedModels,
  syncAndReadMeters,
  findQuotaUser,
  findExpiredIdempotencyHolder,
  checkRequest,
  checkDebts,
  policyLayersOfRequest,
  checkRates,
  decideTokensToHold,
  getOrCreateTokenWindow,
  endUserOfRequest,
} from "./hold-checks.do.ts";
import type { HoldTerms, QuotaUser } from "./hold-checks.do.ts";
import { reloadFieldLimits, adjustHeldOfOwners } from "./budget-memory.do.ts";
import { syncBudgets } from "./budgets.do.ts";
import { addEndUserToMemory, storeEndUser } from "./end-users.do.ts";
import { insertSession, selectSession } from "../tables/session-rows.do.ts";
import { countSessionRequest, refuseTooManySessions } from "./sessions.do.ts";
import { rejectHold } from "./hold-rejection.do.ts";
import { findWarmRoute } from "./warm-routes.do.ts";
import type { Tx } from "./memory.do.ts";

/** If `isRepeat`, the wallet already had this hold, and `answer` is the stored response. */
type HoldResult = { readonly answer: Result<HoldGrant>; readonly isRepeat: boolean };

/** Checks all limits and places a hold. */
export function hold(tx: Tx, request: HoldRequest, terms: HoldTerms): HoldResult {
  const { ledger, row, storageState: room } = tx.memory;
  const wrongId = refuseInvalidHoldId(request.id, tx.clockMs);
  if (wrongId !== null) return firstHold(wrongId);
  if (ledger.holds.has(request.id)) return repeatedHold(tx, request, terms);
  if (row.conflict !== null || room.isFull) {
    return firstHold(refuse({ kind: "storage_unavailable" }));
  }
  const amounts = [request.least, request.sure, request.most];
  assert(
    amounts.every((amount) => Number.isSafeInteger(amount)),
    "a hold is in whole micros",
  );
  const grant = checkHold(tx, request, terms);
  const answer = grant.ok
    ? openGrantedHold(tx, grant.value)
    : rejectHold(
        tx,
        { ...request, externalId: endUserOfRequest(request, terms) },
        { terms, refusal: grant },
      );
  return answer === null ? repeatedHold(tx, request, terms) : firstHold(answer);
}

/**
 * `lapsed` is the ID of an expired request with the same Idempotency-Key, which the new hold voids.
 */
type Grant = AllowedRequest & {
  readonly payer: QuotaUser;
  readonly granted: Micros;
  readonly tokens: number | null;
  readonly lapsed: string | null;
  readonly terms: HoldTerms;
};

/**
 * Checks permissions, Idempotency-Key, debts, rates and then cost. If a retry fails because of its
 * first attempt, `hold` returns the first response.
 */
function checkHold(tx: Tx, requested: HoldRequest, terms: HoldTerms): Result<Grant> {
  const { session } = terms;
  const allowed = checkRequest(tx, requested, terms);
  if (!allowed.ok) return allowed;
  const { request } = allowed.value;
  const lapsed = findExpiredIdempotencyHolder(tx, request);
  if (!lapsed.ok) return lapsed;
  const limited =
    checkDebts(tx, session) ?? refuseTooManySessions(tx, session) ?? checkRates(tx, request, terms);
  if (limited !== null) return limited;
  const fitting = decideWithFallbacks(allowed.value, (part) => decideAmounts(tx, part, terms));
  if (!fitting.ok) return fitting;
  const { allowed: granted, decided } = fitting.value;
  return success({ ...granted, ...decided, lapsed: lapsed.value, terms });
}

function decideAmounts(
  tx: Tx,
  request: HoldRequest,
  terms: HoldTerms,
): Result<Pick<Grant, "payer" | "granted" | "tokens">> {
  const ofKey = decideTokensToHold(tx, request, terms);
  if (!ofKey.ok) return ofKey;
  const payer = findQuotaUser(tx, endUserOfRequest(request, terms));
  if (!payer.ok) return payer;
  const meters = syncAndReadMeters(tx, request, { terms, payer: payer.value });
  const overRequests = checkRequestCountBudgets(meters, tx);
  if (overRequests !== null) return overRequests;
  const tokens = decideTokensWithinBudgets(meters, tx, { request, granted: ofKey.value });
  if (!tokens.ok) return tokens;
  const amount = decideHold(tx.memory.ledger, {
    ...request,
    isQuota: request.placed?.pays === "quota",
    limits: collectDollarLimits(meters, tx),
  });
  if (!amount.ok) return amount;
  return success({ payer: payer.value, granted: amount.value, tokens: tokens.value });
}

/** Returns the first response to a repeated hold, or null. */
export function replayHold(
  tx: Tx,
  request: HoldRequest,
  terms: HoldTerms,
): Result<HoldGrant> | null {
  const known = selectRequest(tx.sql, request.id);
  if (known === null) return null;
  // A request can omit the end user if its key is bound to one.
  const externalId = request.externalId ?? known.externalId;
  const bounds = findBoundsForRetry(request, known);
  const answer = findStoredHoldResult(known, { ...request, ...bounds, externalId });
  if (!answer.ok) return answer;
  const routes = findRoutesForRetry(policyLayersOfRequest(tx, terms), request, {
    ...bounds,
    models: known.models ?? null,
  });
  return success(holdGrantOf(tx, request, { ...known, granted: answer.value, terms, routes }));
}

function repeatedHold(tx: Tx, request: HoldRequest, terms: HoldTerms): HoldResult {
  const answer = replayHold(tx, request, terms);
  assert(answer !== null, "a known id has a row");
  return { answer, isRepeat: true };
}

function firstHold(answer: Result<HoldGrant>): HoldResult {
  return { answer, isRepeat: false };
}

function holdGrantOf(
  tx: Tx,
  { keyId, affinity = null }: HoldRequest,
  {
    granted: amount,
    tokens,
    terms,
    routes,
    uncovered,
  }: Pick<Grant, "granted" | "tokens" | "terms" | "uncovered"> & {
    readonly routes?: Grant["routes"] | undefined;
  },
): HoldGrant {
  const { keepResponsesHours: keepHours } = tx.memory.row.settings;
  const warmRoute = affinity === null ? null : findWarmRoute(tx, affinity);
  const grant = {
    granted: amount,
    ...(keepHours > 0 && { keepHours }),
    ...(warmRoute !== null && { warmRoute }),
    ...(routes !== undefined && { routes }),
    ...(uncovered !== undefined && { uncovered }),
  };
  if (tokens === null) return grant;
  if (terms.tpmLimit === null) return { ...grant, tokensGranted: tokens };
  const state = getOrCreateTokenWindow(tx, keyId).rateState(terms.tpmLimit, tx.nowMs);
  return { ...grant, tokens: { ...state, granted: tokens } };
}

function openGrantedHold(tx: Tx, grant: Grant): Result<HoldGrant> | null {
  const { request, payer, tokens, terms } = grant;
  const { memory, nowMs } = tx;
  const { id, keyId } = request;
  const open = openHoldOf(tx, request, grant);
  const floorId = floorIdFor(tx, id);
  const firstUse = findFirstUse(tx, terms);
  if (!storeGrant(tx, grant, { open, floorId, firstUse })) return null;
  memory.floorId = floorId;
  if (payer !== null && payer.made !== null) addEndUserToMemory(tx, payer.made);
  addOpenHold(memory.ledger, open);
  adjustHeldOfOwners(tx, open, 1);
  if (tokens !== null && terms.tpmLimit !== null) {
    getOrCreateTokenWindow(tx, keyId).add(id, nowMs, tokens);
  }
  countRates(tx, terms, firstUse);
  memory.routine++;
  return success(holdGrantOf(tx, request, grant));
}

function openHoldOf(
  { env, memory, nowMs, period }: Tx,
  request: HoldRequest,
  { payer, granted: amount, tokens, terms, uncovered }: Grant,
): OpenHold {
  const { peer, placed } = request;
  const ttlSeconds = placed?.expiresInS ?? numberVar(env, peer ? "PEER_HOLD_TTL_S" : "HOLD_TTL_S");
  return {
    id: request.id,
    granted: amount,
    externalId: payer?.user.externalId ?? null,
    endUserId: payer?.user.id ?? null,
    keyId: request.keyId,
    session: terms.session?.id ?? null,
    tokens,
    models: needsModels(memory, uncovered) ? listRequestedModels(request) : null,
    admittedAt: nowMs,
    period,
    expiresAt: nowMs + ttlSeconds * 1000,
    ...(placed !== undefined && { purpose: copyHoldPurpose(placed) }),
  };
}

function needsModels({ budgets }: Tx["memory"], uncovered: Grant["uncovered"]): boolean {
  return budgets.scopes.size > 0 || uncovered !== undefined;
}

function countRates(
  tx: Tx,
  { session, isSessionChecked }: HoldTerms,
  firstUse: Session | null,
): void {
  const { memory, nowMs } = tx;
  if (memory.row.rpmLimit !== null) memory.rateLog.push(nowMs);
  if (firstUse !== null) {
    memory.sessions.rows++;
    memory.sessions.live++;
  }
  if (isSessionChecked !== true) countSessionRequest(tx, session);
}

function findFirstUse({ sql }: Tx, { session }: HoldTerms): Session | null {
  return session === undefined || selectSession(sql, session.id) !== null ? null : session;
}

/** Stores a granted hold. If the ID exists, returns false and changes nothing. */
function storeGrant(
  tx: Tx,
  { request, tokens, payer, lapsed }: Grant,
  {
    open,
    floorId,
    firstUse,
  }: { readonly open: OpenHold; readonly floorId: string; readonly firstUse: Session | null },
): boolean {
  const { memory, nowMs, sql } = tx;
  const { id, keyId, idempotency } = request;
  const { models = null } = open;
  const row = {
    key: getOrInsertName(sql, memory.names, keyId),
    tokens,
    failure: null,
    models: models === null ? null : getOrInsertName(sql, memory.names, JSON.stringify(models)),
  };
  const made = payer?.made ?? null;
  const write = (): boolean => {
    // The end user is stored first, because the request's row refers to the end user's number.
    if (made !== null) {
      if (selectRequest(sql, id) !== null) return false;
      storeEndUser(tx, made);
    }
    const values = storedHoldValues(request, open);
    if (!insertRequest(sql, { ...row, state: "held" }, ...values)) return false;
    if (firstUse !== null) {
      const owner = { scope: "session", subject: firstUse.id } as const;
      insertSession(sql, firstUse, keyId);
      reloadFieldLimits(tx, owner);
      syncBudgets(tx, owner, firstUse.budgets);
    }
    if (idempotency !== null) insertIdempotencyKey(sql, idempotency, { id, admittedAt: nowMs });
    if (lapsed !== null) markHoldVoided(sql, lapsed, { at: nowMs, names: memory.names });
    if (floorId !== memory.floorId) lowerFloor(sql, floorId);
    return true;
  };
  const isOneRow =
    idempotency === null && made === null && firstUse === null && floorId === memory.floorId;
  return isOneRow ? write() : tx.storage.transactionSync(write);
}

/**
 * Returns the values to store. For a hold that counts only against quotas, the amounts are 0, and
 * the purpose contains the held amount.
 */
function storedHoldValues(
  request: HoldRequest,
  open: OpenHold,
): [HoldRequest, OpenHold & { readonly purpose?: StoredHoldPurpose | null }] {
  const { purpose = null, granted: held } = open;
  if (purpose === null || !isQuotaHold(open)) return [request, open];
  const none = micros(0);
  return [
    { ...request, least: none, most: none },
    { ...open, granted: none, purpose: { ...purpose, held } },
  ];
}

function floorIdFor(tx: Tx, id: string): string {
  if (id >= tx.memory.floorId) return tx.memory.floorId;
  return lowestHoldIdSince(creationTimeOfHoldId(id) ?? 0);
}

function lowerFloor(sql: SqlStorage, floorId: string): void {
  sql.exec("UPDATE checkpoints SET floor_id = ? WHERE floor_id > ?", floorId, floorId);
}
