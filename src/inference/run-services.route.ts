import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import { now } from "../lib/clock.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { reachObject } from "../lib/reach-object.ts";
import { ownShard, peerShard } from "../regions/outbox-schedule.ts";
import { authorizeAtHome } from "./authorize.ts";
import { offerOf } from "./offer.ts";
import type { RunServices } from "./paid-request.ts";

/**
 * What a run works with: the wallet of this region, or, for a global key away from home, that of its
 * home. Stubs are made at each use: one that failed stays broken.
 */
export function runServices(c: Context<AppEnv>): RunServices {
  const config = c.get("config");
  const { providers, health } = offerOf(config);
  const clock = (): number => now(c.env);
  const here = { providers, health, region: config.region, numbers: config.numbers, now: clock };
  const outboxes = inJurisdiction(c.env.REGION_OUTBOX, config.jurisdiction);
  const { caller } = c.get("admitted");
  if (caller.home === config.region) {
    const wallets = inJurisdiction(c.env.WALLET, config.jurisdiction);
    return {
      ...here,
      hold: (request, after) =>
        reachObject(() => wallets.getByName(caller.orgId).hold(request), { after, attemptsMax: 2 }),
      wallet: (orgId) => wallets.getByName(orgId),
      outbox: (orgId) => outboxes.getByName(ownShard(orgId)),
    };
  }
  const home = config.peers.find((peer) => peer.region === caller.home);
  const at = { requestId: c.get("requestId"), now: clock, spentMs: c.get("admissionMs") };
  return {
    ...here,
    hold: (hold) => authorizeAtHome(home, { keyHash: caller.keyHash, hold }, at),
    wallet: null,
    outbox: (orgId) => outboxes.getByName(peerShard(caller.home, orgId)),
  };
}
