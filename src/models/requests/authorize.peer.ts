import type { Context } from "hono";
import type { AppEnv } from "../../shared/http/context.ts";
import { requestCredential } from "../../shared/caller.ts";
import type { RequestCredential, Caller } from "../../shared/caller.ts";
import { now } from "../../shared/clock.ts";
import type { Failure, Result } from "../../shared/failure.ts";
import { refuse, success } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { micros } from "../../shared/money.ts";
import { callObjectWithRetries } from "../../shared/reach-object.ts";
import type { ObjectCallResult } from "../../shared/reach-object.ts";
import { keyOwnerCacheOf } from "../../accounts/keys/admission.route.ts";
import { identifyGlobalKey } from "../../accounts/keys/internal-caller.ts";
import type { HoldGrant, WalletCalls } from "../../shared/contracts/wallet.ts";
import { walletForAttemptOf } from "./home-or-away.route.ts";
import { parseAuthorizeRequest } from "./authorize.ts";
import type { AuthorizeRequest } from "./authorize.ts";

/**
 * Handles POST /internal/v1/authorize in a key's home region. Checks that the key is global and
 * active, then holds credits. Only the calling region applies the rate limit.
 */
export async function authorizePeer(c: Context<AppEnv>): Promise<Response> {
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

/**
 * Returns the caller's price list and policies without a hold. The wallet checks the key, because
 * only the wallet stores sessions.
 */
async function lookUpCaller(
  c: Context<AppEnv>,
  orgId: string,
  { keyHash, shown }: RequestCredential,
): Promise<ObjectCallResult<HoldGrant>> {
  const readKeyStatus = (): ReturnType<WalletCalls["keyStanding"]> =>
    objectsOf(c.env).wallet(orgId).keyStanding(keyHash, shown);
  const walletCall = await callObjectWithRetries(readKeyStatus, {
    attemptsMax: 2,
    after: c.var.timers.after,
  });
  if (walletCall.unanswered) return walletCall;
  if (!walletCall.result.ok) return { unanswered: false, result: walletCall.result };
  const { priceList, policies, paused } = walletCall.result.value;
  const callerView = {
    granted: micros(0),
    ...(priceList !== undefined && { priceList }),
    ...(policies !== undefined && { policies }),
    ...(paused !== undefined && { paused }),
  };
  return { unanswered: false, result: success(callerView) };
}

async function placeHold(
  c: Context<AppEnv>,
  { keyId, orgId }: Caller,
  { hold, keyHash, shown }: AuthorizeRequest,
): Promise<ObjectCallResult<HoldGrant>> {
  const { after } = c.var.timers;
  if (hold === null) return lookUpCaller(c, orgId, requestCredential(keyHash, shown));
  const request = { ...hold, keyId, peer: true };
  const walletAt = walletForAttemptOf(c.var.config, c.env, after);
  return callObjectWithRetries(
    (attempt) => walletAt(orgId, attempt).hold(request, keyHash, shown),
    {
      attemptsMax: 2,
      after,
    },
  );
}
