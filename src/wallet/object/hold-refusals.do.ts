import { invalid, refuse, success } from "../../lib/failure.ts";
import type { Refusal, Result } from "../../lib/failure.ts";
import { allowsModel } from "../../lib/key-terms.ts";
import type { KeyTerms } from "../../lib/key-terms.ts";
import type { Session } from "../../lib/session.ts";
import type { HoldRequest } from "../../contracts/wallet.ts";
import { decideName, rateWait } from "../rules/hold-guards.ts";
import { shareOf } from "../rules/ledger.ts";
import type { EndUser } from "../rules/quota.ts";
import { selectNameHolder } from "../tables/request-rows.do.ts";
import { newEndUser } from "./end-users.do.ts";
import type { NewEndUser } from "./end-users.do.ts";
import { tokensOf } from "./key-terms.do.ts";
import { findEndUser } from "./memory.do.ts";
import type { Desk } from "./memory.do.ts";
import { refuseSessionRate } from "./sessions.do.ts";

/**
 * What a request is held by: its key's terms, and its session's. `isPlaced`: the session's minute counted it when its
 * key was admitted.
 */
export type HeldTerms = KeyTerms & {
  readonly session?: Session | undefined;
  readonly isPlaced?: boolean;
};

/**
 * What may not be asked for, whatever it costs: by whom, at whose prices, of which model, for which end user; first by
 * the key, then by its session.
 */
export function refuseAsked(desk: Desk, request: HoldRequest, terms: HeldTerms): Refusal | null {
  return (
    refuseOrganization(desk, request) ?? refuseModel(request, terms) ?? refuseUser(request, terms)
  );
}

/** Before anything is decided by amounts that are not the customer's. */
function refuseOrganization({ memory }: Desk, asked: HoldRequest): Refusal | null {
  const { priceList, suspended } = memory.row;
  if (suspended) return refuse({ kind: "organization_suspended" });
  const differs = (asked.priceList ?? null) !== priceList;
  return differs ? refuse({ kind: "price_list_differs", list: priceList }) : null;
}

/**
 * Null for a model that the key lists, and its session. A peer that does not say what it asks for may ask for nothing
 * of a list.
 */
function refuseModel({ model }: HoldRequest, terms: HeldTerms): Refusal | null {
  const { session } = terms;
  if (isListed(model, terms) && (session === undefined || isListed(model, session))) return null;
  return refuse({ kind: "model_not_allowed", model: model?.sent ?? "" });
}

function isListed(model: HoldRequest["model"], terms: Pick<KeyTerms, "allowedModels">): boolean {
  return terms.allowedModels === null || (model !== null && allowsModel(terms, model));
}

/** The end user that a request is of. */
export function userOf(
  { externalId }: HoldRequest,
  { endUser, session }: HeldTerms,
): string | null {
  return externalId ?? session?.endUser ?? endUser;
}

function isOf(user: string | null, own: string | null): boolean {
  return own === null || user === null || user === own;
}

/** Null for the end user that the key has, and its session, where they have one. */
function refuseUser(request: HoldRequest, terms: HeldTerms): Refusal | null {
  if (!isOf(userOf(request, terms), terms.endUser)) {
    return invalid("This API key is for requests of another end user.", "user");
  }
  if (isOf(request.externalId, terms.session?.endUser ?? null)) return null;
  return invalid("This session is for requests of another end user.", "user");
}

/** The id of an expired request whose Idempotency-Key this one takes, or null; or why it may not have that key. */
export function lapsedBy(
  { sql, nowMs }: Desk,
  { idempotency }: HoldRequest,
): Result<string | null> {
  if (idempotency === null) return success(null);
  const { name, body } = idempotency;
  return decideName(selectNameHolder(sql, name, nowMs), body, nowMs);
}

/** While payments that went back are owed, nothing is free; a session is not told how much. */
export function refuseDebtor({ memory }: Desk, session: Session | undefined): Refusal | null {
  const { owed } = memory.debts;
  if (owed === 0) return null;
  return refuse({ kind: "payment_reversed", owedMicro: session === undefined ? owed : null });
}

/** The session's own minute, unless it has the request already, then the organisation's. */
export function refuseRates(desk: Desk, { session, isPlaced }: HeldTerms): Refusal | null {
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

/** How many tokens of the key's minute the request gets; null for a key without a token limit. */
export function tokensFor(
  desk: Desk,
  request: HoldRequest,
  terms: KeyTerms,
): Result<number | null> {
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

/** `counted`: with the id that its open holds have now. `made`: null for an end user that is there. */
export type Payer = {
  readonly user: EndUser;
  readonly counted: EndUser;
  readonly made: NewEndUser | null;
} | null;

export function endUserFor(desk: Desk, externalId: string | null): Result<Payer> {
  if (externalId === null) return success(null);
  const known = findEndUser(desk, "external_id", externalId);
  if (known !== null) return success({ user: known, counted: known, made: null });
  const made = newEndUser(desk, externalId);
  if (made === null) return refuse({ kind: "too_many_end_users" });
  const { user, departed } = made;
  const counted = { ...user, id: departed?.user.id ?? user.id };
  return success({ user, counted, made });
}
