import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import type { Failure } from "../lib/failure.ts";
import { success } from "../lib/failure.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { micros } from "../lib/money.ts";
import { reachObject } from "../lib/reach-object.ts";
import type { Reached } from "../lib/reach-object.ts";
import { identifyGlobalKey } from "../keys/identify.ts";
import type { Key } from "../lib/key.ts";
import type { WalletCalls } from "../wallet/wallet-contract.ts";
import { readAuthorizeBody } from "./authorize.ts";
import type { AuthorizeRequest, Authorized } from "./authorize.ts";

/**
 * POST /internal/v1/authorize, at a key's home: is the key global and live, whose is it, and, for a
 * paid request, the hold in its wallet. Its own rate limit counts nothing here: that is the peer's.
 */
export async function authorizePeer(c: Context<AppEnv>): Promise<Response> {
  const request = readAuthorizeBody(c.var.peerBody);
  if (request === null) return c.json({ ok: false, failure: { kind: "internal" } });
  const registers = inJurisdiction(c.env.KEY_REGISTER, c.var.config.jurisdiction);
  const { hold: _, ...called } = request;
  const key = await identifyGlobalKey((name) => registers.getByName(name), called);
  if (!key.ok) return c.json(refused(key.failure));
  const reached = await holdFor(c, key.value, request);
  if (reached.unanswered) return c.json({ ...refused(reached.failure), may_hold: true });
  const held = reached.result;
  if (!held.ok) return c.json(refused(held.failure));
  const { orgId, keyId, memberId, rpmLimit } = key.value;
  const whose = { org_id: orgId, key_id: keyId, member_id: memberId, rpm_limit: rpmLimit };
  return c.json({ ok: true, ...whose, ...held.value });
}

function refused(failure: Failure): object {
  return { ok: false, failure };
}

/** One attempt fewer than a request at home would make: the peer repeats the whole call. */
async function holdFor(
  c: Context<AppEnv>,
  key: Key,
  { hold, keyHash, shown }: AuthorizeRequest,
): Promise<Reached<Authorized>> {
  const wallets = inJurisdiction(c.env.WALLET, c.var.config.jurisdiction);
  if (hold === null) {
    const nothing = success({ granted: micros(0) });
    if (shown?.session === undefined) return { unanswered: false, result: nothing };
    // whether a session lives its wallet alone knows
    const ask = (): ReturnType<WalletCalls["keyStanding"]> =>
      wallets.getByName(key.orgId).keyStanding(keyHash, shown);
    const reached = await reachObject(ask, { attemptsMax: 2 });
    if (reached.unanswered) return reached;
    return { unanswered: false, result: reached.result.ok ? nothing : reached.result };
  }
  const request = { ...hold, keyId: key.keyId, peer: true };
  return reachObject(() => wallets.getByName(key.orgId).hold(request, keyHash, shown), {
    attemptsMax: 2,
  });
}
