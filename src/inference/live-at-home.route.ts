import type { Context, Next } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { calledBy } from "../lib/caller.ts";
import { now } from "../lib/clock.ts";
import { authorizeAtHome } from "./authorize.ts";

/**
 * For what a peer answers by itself and without money: a global key away from home must live there at
 * this moment. Home away: 503.
 */
export async function requireLiveAtHome(
  c: Context<AppEnv>,
  next: Next,
): Promise<Response | undefined> {
  const { admissionMs: spentMs, admitted, config, requestId } = c.var;
  const { home: region, keyHash, shown } = admitted.caller;
  if (region !== config.region) {
    const home = config.peers.find((peer) => peer.region === region);
    const at = { requestId, now: () => now(c.env), spentMs };
    const reached = await authorizeAtHome(home, { ...calledBy(keyHash, shown), hold: null }, at);
    if (reached.unanswered) return fail(c, reached.failure);
    if (!reached.result.ok) return fail(c, reached.result.failure);
  }
  await next();
  return undefined;
}
