import type { Context, Next } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { callersOf } from "../keys/admission.route.ts";
import { calledBy } from "../lib/caller.ts";
import type { Caller } from "../lib/caller.ts";
import { now } from "../lib/clock.ts";

import type { After } from "../lib/timers.ts";
import { recorderOf } from "../metrics/count-requests.route.ts";
import { ownShard, peerShard } from "../regions/outbox-schedule.ts";
import { authorizeAtHome } from "./authorize.ts";
import { deploymentOf } from "./deployment.ts";
import { keptAtHome } from "./kept-wire.ts";
import type { Home, RunServices } from "./paid-request.ts";
import { outboxesOf, walletsOf } from "./together.ts";
import { pricingOf } from "./pricing.route.ts";
import { shedsOf } from "./overload.route.ts";
import { objectsOf } from "../contracts/objects.ts";

/** The other region in which a caller's wallet is; null: it is this one. `after`: the request's timers while it has them. */
export function homeOf(c: Context<AppEnv>, caller: Caller, after?: After): Home | null {
  const config = c.get("config");
  if (caller.home === config.region) return null;
  const peer = config.peers.find(({ region }) => region === caller.home);
  const called = calledBy(caller.keyHash, caller.shown);
  const { env } = c;
  const [requestId, spentMs] = [c.get("requestId"), c.get("admissionMs")];
  const at = { requestId, now: () => now(env), spentMs, ...(after !== undefined && { after }) };
  return {
    authorize: (hold) => authorizeAtHome(peer, { ...called, hold }, at),
    askKept: (request) => keptAtHome(peer, { called, ...request }, at),
  };
}

/** What a run of this caller works with. Stubs are made at each use: one that failed stays broken. */
export function runServices(c: Context<AppEnv>, caller: Caller): RunServices {
  const { env } = c; // not c: what is kept for a run must not keep its request
  const [config, timers] = [c.get("config"), c.get("timers")];
  const { region, numbers } = config;
  const { providers, health } = deploymentOf(config);
  const home = homeOf(c, caller, timers.after);
  const outboxes = outboxesOf(config, env, timers.after);
  const here = {
    providers,
    health,
    tally: recorderOf(config).tally,
    callers: callersOf(config),
    sheds: shedsOf(config),
    region,
    numbers,
    now: () => now(env),
    corrected: pricingOf(c).corrected,
    kept: objectsOf(env).kept,
    outbox: (owner: Pick<Caller, "orgId" | "keyId">, attempt: number) =>
      outboxes(home === null ? ownShard(owner) : peerShard(caller.home, owner), attempt),
  };
  if (home !== null) return { ...here, home, wallet: null };
  return { ...here, home, wallet: walletsOf(config, env, timers.after) };
}

/**
 * For what a peer answers by itself and without money: a global key away from home must live there at
 * this moment. Home away: 503.
 */
export async function requireLiveAtHome(
  c: Context<AppEnv>,
  next: Next,
): Promise<Response | undefined> {
  const { admitted, config } = c.var;
  const { keyHash: hash, shown } = admitted.caller;
  const reached = await homeOf(c, admitted.caller)?.authorize(null);
  if (reached?.unanswered === true) return fail(c, reached.failure);
  if (reached?.result.ok === false) {
    callersOf(config).refused({ hash, shown }, reached.result.failure);
    return fail(c, reached.result.failure);
  }
  const priceList = reached?.result.ok === true ? reached.result.value.priceList : undefined;
  if (priceList !== undefined) c.set("admitted", { ...admitted, priceList });
  await next();
  return undefined;
}
