import type { BudgetOwner } from "../../../shared/budgets.ts";
import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import type { Paused } from "../../../shared/paused.ts";
import type { KeyTerms } from "../../../shared/key-terms.ts";
import type { ConcurrencyState, KeyStatus } from "../../../shared/key-status.ts";
import type { Session } from "../../../shared/session.ts";
import type { PresentedSecret } from "../../../shared/caller.ts";
import type { ActiveKey } from "../tables/key-rows.do.ts";
import type { HoldRequest } from "../../../shared/contracts/wallet.ts";
import {
  checkIdempotencyKeyReuse,
  computeRateLimitState,
  refuseOverRate,
} from "../rules/hold-guards.ts";
import { computeHoldableShare } from "../rules/ledger.ts";
import { countRunningRequests } from "../rules/open-holds.ts";
import { findFirstPause } from "../rules/pauses.ts";
import { collectPolicyLayers, applyPolicies } from "../rules/policies.ts";
import type { AllowedRequest } from "../rules/policies.ts";
import type { PolicyLayer } from "../../../shared/policy.ts";
import type { EndUser } from "../../../shared/contracts/end-users.ts";
import { selectIdempotencyHolder } from "../tables/request-rows.do.ts";
import { prepareEndUser, metersOfQuotaUser } from "./end-users.do.ts";
import type { NewEndUser } from "./end-users.do.ts";
import { readDollarBudgetStatus, syncDollarBudget } from "./key-dollar-budget.do.ts";
import { selectEndUser } from "../tables/end-user-rows.do.ts";
import type { Tx } from "./memory.do.ts";
import { refuseOverSessionRate, metersOfSession } from "./sessions.do.ts";
import { TokenWindow } from "../rules/token-window.ts";
import { isAnyModelCounted } from "../rules/limits.ts";
import type { Meter } from "../rules/limits.ts";
import { BUDGET_SCOPE_CHECK_ORDER, metersOfRequest } from "./budget-memory.do.ts";
import { syncBudgets } from "./budgets.do.ts";

/**
 * The limits that apply to a hold. If `isSessionChecked`, the caller applies the session's rate
 * limit.
 */
export type HoldTerms = KeyTerms & {
  readonly memberId?: string;
  readonly session?: Session | undefined;
  readonly isSessionChecked?: boolean;
};

/** Returns a request's limits from its key and session. */
export function holdTermsOf(
  { memberId, terms }: ActiveKey,
  shown: PresentedSecret | undefined,
): HoldTerms {
  const { session } = shown ?? {};
  return { ...terms, memberId, ...(session !== undefined && { session }) };
}

/**
 * Checks suspension, pauses, end user, price list and policies. For a client's hold, checks
 * `may_hold` instead of price list and policies. Returns the request with its allowed routes.
 */
export function checkRequest(
  tx: Tx,
  request: HoldRequest,
  terms: HoldTerms,
): Result<AllowedRequest> {
  if (tx.memory.row.suspended) return refuse({ kind: "organization_suspended" });
  const paused = findPauseOfRequest(tx, terms, {
    keyId: request.keyId,
    externalId: endUserOfRequest(request, terms),
  });
  if (paused !== null) return refuse(paused);
  const differs = refusePriceListMismatch(tx, request);
  if (differs !== null) return differs;
  const allowed = checkPurpose(tx, request, terms);
  return allowed.ok ? (refuseOtherEndUser(request, terms) ?? allowed) : allowed;
}

export function policyLayersOfRequest({ memory }: Tx, terms: HoldTerms): readonly PolicyLayer[] {
  return collectPolicyLayers(memory.policies, terms);
}

/** Returns the field `policies`, or `{}` without policies. */
export function policyLayersField(
  tx: Tx,
  terms: HoldTerms,
): { readonly policies?: readonly PolicyLayer[] } {
  const policies = policyLayersOfRequest(tx, terms);
  return policies.length === 0 ? {} : { policies };
}

function checkPurpose(tx: Tx, request: HoldRequest, terms: HoldTerms): Result<AllowedRequest> {
  const { mayHold, session } = terms;
  if (request.placed === undefined) {
    return applyPolicies(policyLayersOfRequest(tx, terms), request, session !== undefined);
  }
  const isAllowed = mayHold === true && (session === undefined || session.mayHold === true);
  return isAllowed ? success({ request }) : refuse({ kind: "hold_not_allowed" });
}

type PauseCheck = Pick<HoldRequest, "keyId" | "externalId"> & { readonly isRunning?: boolean };

export function findPauseOfRequest(
  tx: Tx,
  { memberId, session }: HoldTerms,
  { keyId, externalId, isRunning = false }: PauseCheck,
): Paused | null {
  const { pauses } = tx.memory;
  if (pauses.byName.size === 0) return null;
  const user = externalId === null ? null : selectEndUser(tx.sql, "external_id", externalId);
  const owners: BudgetOwner[] = [
    { scope: "organization", subject: "" },
    { scope: "member", subject: memberId ?? "" },
    { scope: "key", subject: keyId },
    { scope: "session", subject: session?.id ?? "" },
    { scope: "end_user", subject: user?.id ?? "" },
  ];
  return findFirstPause(pauses, owners, { isSession: session !== undefined, isRunning });
}

/** Returns the field `paused`, or `{}` without a pause. */
export function pausedField(tx: Tx, keyId: string, terms: HoldTerms): { readonly paused?: Paused } {
  const externalId = terms.session?.endUser ?? terms.endUser;
  const paused = findPauseOfRequest(tx, terms, { keyId, externalId });
  return paused === null ? {} : { paused };
}

function refusePriceListMismatch({ memory }: Tx, asked: HoldRequest): Refusal | null {
  const { priceList } = memory.row;
  if (asked.placed !== undefined) return null;
  const differs = (asked.priceList ?? null) !== priceList;
  return differs ? refuse({ kind: "price_list_differs", list: priceList }) : null;
}

/** Returns the external ID from the request, session or key. */
export function endUserOfRequest(
  { externalId }: HoldRequest,
  { endUser, session }: HoldTerms,
): string | null {
  return externalId ?? session?.endUser ?? endUser;
}

function isAllowedUser(user: string | null, own: string | null): boolean {
  return own === null || user === null || user === own;
}

function refuseOtherEndUser(request: HoldRequest, terms: HoldTerms): Refusal | null {
  if (!isAllowedUser(endUserOfRequest(request, terms), terms.endUser)) {
    return invalid("This API key belongs to another end user.", "user");
  }
  if (isAllowedUser(request.externalId, terms.session?.endUser ?? null)) return null;
  return invalid("This session belongs to another end user.", "user");
}

/**
 * Returns the ID of an expired request with the same Idempotency-Key and body, or null. Fails if
 * the key is in use.
 */
export function findExpiredIdempotencyHolder(
  { sql, nowMs }: Tx,
  { idempotency }: HoldRequest,
): Result<string | null> {
  if (idempotency === null) return success(null);
  const { name, body } = idempotency;
  return checkIdempotencyKeyReuse(selectIdempotencyHolder(sql, name, nowMs), body, nowMs);
}

/** Rejects requests while the organization owes refunded credits. Sessions don't see the amount. */
export function checkDebts({ memory }: Tx, session: Session | undefined): Refusal | null {
  const { owed } = memory.debts;
  if (owed === 0) return null;
  return refuse({ kind: "payment_reversed", owedMicro: session === undefined ? owed : null });
}

/**
 * Checks the rate limits of session and organization, and concurrency limits. `KeyAdmissions`
 * checks the key's rate limit.
 */
export function checkRates(tx: Tx, request: HoldRequest, terms: HoldTerms): Refusal | null {
  const { session, isSessionChecked } = terms;
  const ofSession = isSessionChecked === true ? null : refuseOverSessionRate(tx, session);
  return ofSession ?? refuseOrganizationRate(tx) ?? checkConcurrency(tx, request, terms);
}

function refuseOrganizationRate({ memory, nowMs }: Tx): Refusal | null {
  const { rpmLimit } = memory.row;
  if (rpmLimit === null) return null;
  return refuseOverRate("organization", computeRateLimitState(memory.rateLog, rpmLimit, nowMs));
}

export function readConcurrencyStates(
  { memory }: Tx,
  keyId: string,
  { maxConcurrent: ofKey }: KeyTerms,
): readonly ConcurrencyState[] {
  const { ledger, maxConcurrent: ofAll } = memory;
  const limits = [
    { scope: "key", limit: ofKey ?? null, owner: keyId },
    { scope: "organization", limit: ofAll, owner: null },
  ] as const;
  return limits.flatMap(({ scope, limit, owner }) =>
    limit === null ? [] : [{ scope, limit, running: countRunningRequests(ledger, owner) }],
  );
}

/** Limits concurrent requests. A session's error omits the limit. */
function checkConcurrency(
  tx: Tx,
  { keyId, placed }: HoldRequest,
  terms: HoldTerms,
): Refusal | null {
  if (placed !== undefined) return null;
  const full = readConcurrencyStates(tx, keyId, terms).find(
    ({ limit, running }) => running >= limit,
  );
  if (full === undefined) return null;
  const { scope, limit } = full;
  const isHidden = terms.session !== undefined;
  return refuse({ kind: "concurrency_limited", scope, limit: isHidden ? null : limit });
}

/** Returns the tokens to hold within the key's token limit per minute, or null without a limit. */
export function decideTokensToHold(
  tx: Tx,
  request: HoldRequest,
  terms: KeyTerms,
): Result<number | null> {
  const { tpmLimit: limit } = terms;
  if (limit === null || request.placed !== undefined) return success(null);
  const { prompt, least: leastOutput, most } = request.tokens;
  const least = request.hasCap ? most : leastOutput;
  const share = (free: number): number => computeHoldableShare(free, request.hasCap);
  const verdict = getOrCreateTokenWindow(tx, request.keyId).decide(
    limit,
    { least, most, share },
    tx.nowMs,
  );
  if (verdict.kind === "granted") return success(verdict.tokens);
  if (verdict.kind === "never") {
    return refuse({ kind: "tokens_over_limit", limit, prompt, required: least });
  }
  const { remaining, retryAfterMs } = verdict;
  return refuse({ kind: "tokens_limited", limit, remaining, required: least, retryAfterMs });
}

/** The end user whose quotas apply. `made` is the new end user, or null for an existing one. */
export type QuotaUser = { readonly user: EndUser; readonly made: NewEndUser | null } | null;

/** Finds an end user, or prepares a new one without storing it. */
export function findQuotaUser(tx: Tx, externalId: string | null): Result<QuotaUser> {
  if (externalId === null) return success(null);
  const known = selectEndUser(tx.sql, "external_id", externalId);
  if (known !== null) return success({ user: known, made: null });
  const made = prepareEndUser(tx, externalId);
  if (made === null) return refuse({ kind: "too_many_end_users" });
  return success({ user: made.user, made });
}

export function getOrCreateTokenWindow({ memory }: Tx, keyId: string): TokenWindow {
  const known = memory.tokens.get(keyId);
  if (known !== undefined) return known;
  const window = new TokenWindow();
  memory.tokens.set(keyId, window);
  return window;
}

export function keyStatusOf(
  tx: Tx,
  { keyId, terms }: { readonly keyId: string; readonly terms: KeyTerms },
): Omit<KeyStatus, "requests" | "budgets" | "madeAt" | "sessionsCut"> {
  const { nowMs } = tx;
  const tokens =
    terms.tpmLimit === null
      ? null
      : getOrCreateTokenWindow(tx, keyId).rateState(terms.tpmLimit, nowMs);
  return { terms, tokens, budget: readDollarBudgetStatus(tx, keyId, terms) };
}

export function listRequestedModels({ candidates, model }: HoldRequest): readonly string[] | null {
  if (candidates !== undefined) return [...new Set(candidates.map((one) => one.model))];
  return model === null ? null : [model.id];
}

export function syncAndReadMeters(
  tx: Tx,
  request: HoldRequest,
  { terms, payer }: { readonly terms: HoldTerms; readonly payer: QuotaUser },
): readonly Meter[] {
  const { keyId } = request;
  const { session } = terms;
  syncDollarBudget(tx, keyId, terms, request.placed?.pays === "quota");
  syncBudgets(tx, { scope: "key", subject: keyId }, terms.budgets);
  const meters = [
    ...metersOfQuotaUser(tx, payer),
    ...metersOfRequest(tx, { keyId, endUserId: null, session: null }),
    ...(session === undefined ? [] : metersOfSession(tx, session)),
  ];
  const models = listRequestedModels(request);
  // The order matters, because only the first exceeded limit is reported and can pause its owner.
  return meters
    .filter(({ budget }) => isAnyModelCounted(budget, models))
    .toSorted(
      (one, other) =>
        BUDGET_SCOPE_CHECK_ORDER.indexOf(one.scope) - BUDGET_SCOPE_CHECK_ORDER.indexOf(other.scope),
    );
}
