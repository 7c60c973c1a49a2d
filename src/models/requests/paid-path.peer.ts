import type { Context } from "hono";
import type { AppEnv } from "../../shared/http/context.ts";
import { createRequestCredential } from "../../shared/caller.ts";
import type { RequestCredential, Caller } from "../../shared/caller.ts";
import { now, elapsedMs } from "../../shared/clock.ts";
import type { Failure, Result } from "../../shared/failure.ts";
import { refuse, success } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { micros } from "../../shared/money.ts";
import { callObjectWithRetries, callObject } from "../../shared/reach-object.ts";
import type { ObjectCallResult } from "../../shared/reach-object.ts";
import { keyOwnerCacheOf } from "../../accounts/keys/admission.route.ts";
import { identifyGlobalKey, toAdmittedRequest } from "../../accounts/keys/internal-caller.ts";
import type { HoldGrant } from "../../shared/contracts/wallet.ts";
import { readCallerTerms } from "./caller-terms.route.ts";
import { createWalletGetter } from "./home-or-away.route.ts";
import { parseAuthorizeRequest } from "./authorize.ts";
import type { AuthorizeRequest } from "./authorize.ts";
import { fail } from "../../shared/http/context.ts";
import { errorMessageOf } from "../../shared/log.ts";
import type { TimerFunction } from "../../shared/timers.ts";
import { withTimeout } from "../../shared/timers.ts";
import { findOrganization } from "../../accounts/organizations/organizations.store.ts";
import { deliverByReceiver } from "../../regions/outbox-delivery.ts";
import type { OutcomeItem } from "../../shared/contracts/outbox.ts";
import {
  deliverOutcome,
  parsePeerItems,
  MALFORMED_ITEM_RESULT,
  outcomeFromJson,
  deliveryResultToJson,
} from "../../regions/outbox-format.ts";
import type { DeliveryResult } from "../../regions/outbox-format.ts";
import type { StubGetters } from "../../shared/contracts/objects.ts";
import type { Region } from "../../shared/regions.ts";
import * as z from "zod/mini";
import { parseBody } from "../../shared/http/parse-body.ts";
import { failureBatchSchema } from "../../shared/failed-request.ts";
import type { StoredResponseResult } from "../../shared/contracts/stored-responses.ts";
import {
  createContinuationFilter,
  responseOwnerOf,
} from "../../shared/contracts/stored-responses.ts";
import { storedResponsesResultToJson, parseStoredResponsesRequest } from "./stored-format.ts";
import type { PeerStoredResponsesRequest } from "./stored-format.ts";
import { STOP_QUERY_TIMEOUT_MS, parseStopQuery } from "./run-watch.ts";

/**
 * Handles POST /internal/v1/authorize in a key's home region. Checks that the key is global and
 * active, then holds credits. Only the calling region applies the rate limit.
 */
export async function handlePeerAuthorize(c: Context<AppEnv>): Promise<Response> {
  const request = parseAuthorizeRequest(c.var.peerBody);
  if (request === null) return c.json({ ok: false, failure: { kind: "internal" } });
  const caller = await identifyCaller(c, request);
  if (!caller.ok) return c.json(refusalBody(caller.failure));
  const walletCall = await placeHold(c, caller.value, request);
  if (walletCall.unanswered) return c.json({ ...refusalBody(walletCall.failure), may_hold: true });
  const holdResult = walletCall.result;
  if (holdResult.ok) return c.json({ ok: true, ...holdResult.value });
  keyOwnerCacheOf(c.var.config).recordRefusal(verifiedKey(request), holdResult.failure);
  return c.json(refusalBody(holdResult.failure));
}

/**
 * Returns the key's owner. For a hold, checks this isolate's cache first. Otherwise, calls the key
 * object, which also records the use of the key.
 */
async function identifyCaller(
  c: Context<AppEnv>,
  request: AuthorizeRequest,
): Promise<Result<Caller>> {
  const { config, timers } = c.var;
  const callers = keyOwnerCacheOf(config);
  const key = { ...verifiedKey(request), home: config.region };
  const nowMs = now(c.env);
  if (callers.isRevoked(key)) return refuse({ kind: "invalid_api_key", isForGood: true });
  const known = request.hold === null ? undefined : callers.getIfRecentlyIdentified(key, nowMs);
  if (known?.scope === "global") return success(known);
  const register = objectsOf(c.env).register;
  const identified = await identifyGlobalKey(register, request, null, timers.after);
  return identified.ok
    ? success(callers.recordIdentified(key, identified.value, nowMs))
    : identified;
}

function verifiedKey({ keyHash: hash, shown }: AuthorizeRequest) {
  return { hash, shown };
}

function refusalBody(failure: Failure): object {
  return { ok: false, failure };
}

async function lookUpCaller(
  c: Context<AppEnv>,
  orgId: string,
  credential: RequestCredential,
): Promise<ObjectCallResult<HoldGrant>> {
  const read = await readCallerTerms(c, orgId, credential, c.var.timers.after);
  if (read.unanswered) return read;
  const { result } = read;
  if (!result.ok) return { unanswered: false, result };
  return { unanswered: false, result: success({ granted: micros(0), ...result.value }) };
}

async function placeHold(
  c: Context<AppEnv>,
  { keyId, orgId }: Caller,
  { hold, keyHash, shown }: AuthorizeRequest,
): Promise<ObjectCallResult<HoldGrant>> {
  const { after } = c.var.timers;
  if (hold === null) return lookUpCaller(c, orgId, createRequestCredential(keyHash, shown));
  const request = { ...hold, keyId, peer: true };
  const walletAt = createWalletGetter(c.var.config, c.env, after);
  return callObjectWithRetries(
    (attempt) => walletAt(orgId, attempt).hold(request, keyHash, shown),
    { attemptsMax: 2, after },
  );
}

/**
 * Handles POST /internal/v1/outcomes. Applies at most 100 outcomes of requests that another region
 * served. Returns 200 with a result for each, in order.
 */
export async function handlePeerOutcomes(c: Context<AppEnv>): Promise<Response> {
  const items = parsePeerItems(c.var.peerBody);
  if (!items.ok) return fail(c, items.failure);
  const deliveries = await applyOutcomes(items.value, c.var.peer, {
    wallet: objectsOf(c.env).wallet,
    isOrganization: async (orgId) => (await findOrganization(c.env.DB, orgId)) !== null,
    after: c.var.timers.after,
  });
  const results = deliveries.map((delivery, i) =>
    deliveryResultToJson("hold_id", items.value[i], delivery),
  );
  return c.json({ ok: true, results });
}

const WALLET_TIMEOUT_MS = 2000;
/**
 * Maximum ms for all outcomes, less than the sender's timeout. Outcomes that haven't started by
 * then are reported as untried.
 */
const ALL_TIMEOUT_MS = 4000;

type OutcomeServices = StubGetters<"wallet", "settle" | "void"> & {
  readonly isOrganization: (orgId: string) => Promise<boolean>;
  readonly after?: TimerFunction;
};

/**
 * Applies another region's outcomes. A wallet applies each outcome once, so duplicates and order
 * don't matter.
 */
export function applyOutcomes(
  items: readonly unknown[],
  sender: Region,
  services: OutcomeServices,
): Promise<readonly DeliveryResult[]> {
  const untilMs = elapsedMs() + ALL_TIMEOUT_MS;
  const outcomes = items.map((value) => outcomeFromJson(value, sender));
  return deliverByReceiver(
    outcomes,
    (item) => item?.orgId ?? null,
    async (item): Promise<DeliveryResult> => {
      if (item === null) return MALFORMED_ITEM_RESULT;
      const leftMs = untilMs - elapsedMs();
      if (leftMs <= 0) return { kind: "untried" };
      try {
        const limitMs = Math.min(leftMs, WALLET_TIMEOUT_MS);
        return await withTimeout(applyOutcome(item, services), limitMs, services.after);
      } catch (error) {
        return { kind: "failed", reason: errorMessageOf(error) };
      }
    },
  );
}

async function applyOutcome(item: OutcomeItem, services: OutcomeServices): Promise<DeliveryResult> {
  const delivery = await deliverOutcome(item, services.wallet);
  if (delivery.kind !== "failed" || delivery.reason !== "storage_unavailable") return delivery;
  // A wallet that never existed responds like a wallet that lost its data. Only D1 can distinguish
  // the two cases.
  if (await services.isOrganization(item.orgId)) return delivery;
  return { kind: "refused", reason: "unknown organization" };
}

const message = z.object({
  org_id: z.string().check(z.minLength(1), z.maxLength(64)),
  batch: failureBatchSchema,
});

/**
 * Handles POST /internal/v1/failures. Records another region's failed requests. Returns 200 even if
 * the wallet fails, because a retry could count a request twice.
 */
export async function handlePeerFailures(c: Context<AppEnv>): Promise<Response> {
  const body = parseBody(message, c.var.peerBody);
  if (!body.ok) return fail(c, body.failure);
  const { org_id: orgId, batch } = body.value;
  const { after } = c.var.timers;
  const call = () => objectsOf(c.env).wallet(orgId).noteFailed(batch);
  const walletCall = await callObjectWithRetries(call, { after, attemptsMax: 1 });
  return c.json({ ok: !walletCall.unanswered && walletCall.result.ok });
}

/** Handles POST /internal/v1/kept: a peer reads and stores responses. */
export async function handlePeerStoredResponses(c: Context<AppEnv>): Promise<Response> {
  const request = parseStoredResponsesRequest(c.var.peerBody);
  const answer =
    request === null ? refuse({ kind: "storage_unavailable" }) : await runOperation(c, request);
  return c.json(storedResponsesResultToJson(answer));
}

async function runOperation(
  c: Context<AppEnv>,
  { called, recall, keep }: PeerStoredResponsesRequest,
): Promise<Result<StoredResponseResult | null>> {
  const { config, timers } = c.var;
  const register = objectsOf(c.env).register;
  const key = await identifyGlobalKey(register, called, null, timers.after);
  if (!key.ok) return key;
  const admitted = toAdmittedRequest(key.value, called, config.region);
  const kept = () => objectsOf(c.env).kept(key.value.orgId);
  if (recall !== null) {
    return callObject(() => kept().recall(recall, createContinuationFilter(admitted)));
  }
  if (keep === null) return refuse({ kind: "storage_unavailable" });
  return callObject(() => kept().keep({ ...keep, by: responseOwnerOf(admitted.caller) }));
}

/** Handles POST /internal/v1/watch. Returns which of a peer's running requests must end. */
export async function handlePeerStopQuery(c: Context<AppEnv>): Promise<Response> {
  const query = parseStopQuery(c.var.peerBody);
  if (query === null) return fail(c, { kind: "internal" });
  const stops = await callObject(() => objectsOf(c.env).wallet(query.orgId).watch(query.runs), {
    budgetMs: STOP_QUERY_TIMEOUT_MS,
  });
  return stops.ok ? c.json({ stops: stops.value }) : fail(c, stops.failure);
}
