import type { Context } from "hono";
import type { AppEnv, Presumed } from "../http/context.ts";
import { calledBy } from "../lib/caller.ts";
import type { Caller } from "../lib/caller.ts";
import { now } from "../lib/clock.ts";
import type { Result } from "../lib/failure.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { reachObject } from "../lib/reach-object.ts";
import type { Reached } from "../lib/reach-object.ts";
import type { After } from "../lib/timers.ts";
import type { HoldGrant, HoldRequest, WalletCalls } from "../wallet/wallet-contract.ts";
import { ownShard, peerShard } from "../regions/outbox-schedule.ts";
import { authorizeAtHome } from "./authorize.ts";
import { deploymentOf } from "./deployment.ts";
import type { RunServices } from "./paid-request.ts";

/** A hold is asked for so often: a client waits. */
const ATTEMPTS = 2;

/**
 * What a run works with: the wallet of this region, or, for a global key away from home, that of its
 * home. Stubs are made at each use: one that failed stays broken.
 */
export function runServices(c: Context<AppEnv>, caller: Caller): RunServices {
  const config = c.get("config");
  const { providers, health } = deploymentOf(config);
  const clock = (): number => now(c.env);
  const here = { providers, health, region: config.region, numbers: config.numbers, now: clock };
  const outboxes = inJurisdiction(c.env.REGION_OUTBOX, config.jurisdiction);
  if (caller.home === config.region) {
    const wallets = inJurisdiction(c.env.WALLET, config.jurisdiction);
    const wallet = (): Holding => wallets.getByName(caller.orgId);
    const presumed = c.get("presumed");
    return {
      ...here,
      hold: async (request, after) =>
        showTokens(
          c,
          presumed === undefined
            ? await reachObject(() => wallet().hold(request, caller.keyHash, caller.shown), {
                after,
                attemptsMax: ATTEMPTS,
              })
            : await admitAndHold(c, presumed, { wallet, request, after }),
        ),
      wallet: (orgId) => wallets.getByName(orgId),
      outbox: (orgId) => outboxes.getByName(ownShard(orgId)),
    };
  }
  const home = config.peers.find((peer) => peer.region === caller.home);
  const called = calledBy(caller.keyHash, caller.shown);
  const at = { requestId: c.get("requestId"), now: clock, spentMs: c.get("admissionMs") };
  return {
    ...here,
    hold: async (hold) => showTokens(c, await authorizeAtHome(home, { ...called, hold }, at)),
    wallet: null,
    outbox: (orgId) => outboxes.getByName(peerShard(caller.home, orgId)),
  };
}

type Holding = Pick<WalletCalls, "hold" | "admitAndHold">;

/** The request's headers say what is left of the key's token limit, if it has one. */
function showTokens(c: Context<AppEnv>, reached: Reached<HoldGrant>): Reached<HoldGrant> {
  const tokens = !reached.unanswered && reached.result.ok ? reached.result.value.tokens : undefined;
  if (tokens !== undefined) c.set("admitted", { ...c.get("admitted"), tokens });
  return reached;
}

/** Both in one call; once the key is admitted, the request's headers say what is left of its minute. */
function admitAndHold(
  c: Context<AppEnv>,
  { caller, forget }: Presumed,
  { wallet, request, after }: { wallet: () => Holding; request: HoldRequest; after: After },
): Promise<Reached<HoldGrant>> {
  const ask = async (): Promise<Result<HoldGrant>> => {
    const answer = await wallet().admitAndHold(caller.keyHash, request, caller.shown);
    if (!answer.ok) {
      if (answer.failure.kind === "invalid_api_key") forget();
      return answer;
    }
    const { admitted, held } = answer.value;
    const { limit, remaining, resetMs } = admitted;
    c.set("admitted", { caller, rate: { limit, remaining, resetMs } });
    return held;
  };
  return reachObject(ask, { after, attemptsMax: ATTEMPTS });
}
