import type { Context, Next } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv, Presumed } from "../http/context.ts";
import { callersOf } from "../keys/admission.route.ts";
import { calledBy } from "../lib/caller.ts";
import type { Caller } from "../lib/caller.ts";
import { now } from "../lib/clock.ts";
import { refuse } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { reachObject } from "../lib/reach-object.ts";
import type { Reached } from "../lib/reach-object.ts";
import type { After } from "../lib/timers.ts";
import { recorderOf } from "../metrics/count-requests.route.ts";
import { ownShard, peerShard } from "../regions/outbox-schedule.ts";
import type { HoldGrant, HoldRequest, WalletCalls } from "../wallet/wallet-contract.ts";
import { authorizeAtHome } from "./authorize.ts";
import { deploymentOf } from "./deployment.ts";
import { keeperOf } from "./kept.route.ts";
import type { Run, RunServices } from "./paid-request.ts";
import { enqueue, voidItem } from "./settle.ts";

/**
 * Holds between the least and the most that a run can cost; what was granted. An unknown outcome is voided by
 * the outbox and refused.
 */
export async function hold(run: Run): Promise<Result<HoldGrant>> {
  const reached = await run.services.hold(requestOf(run), run.timers.after);
  if (!reached.unanswered) return reached.result;
  await enqueue(run, voidItem(run));
  return refuse(reached.failure);
}

function requestOf({ caller, id, idempotency, request, services }: Run): HoldRequest {
  const { body, bounds, cap, model, prompt, user } = request;
  const { model: sent } = body;
  const { choices = 1, least = 0, whole = 0 } = cap ?? {};
  return {
    id,
    least: bounds.least,
    sure: bounds.sure,
    most: bounds.most,
    hasCap: cap === null || cap.isAsked,
    tokens: {
      prompt: prompt.estimate,
      least: prompt.estimate + least * choices,
      most: prompt.estimate + whole * choices,
    },
    model: { sent: typeof sent === "string" ? sent : model.id, id: model.id },
    externalId: user,
    keyId: caller.keyId,
    peer: caller.home !== services.region,
    idempotency,
  };
}

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
  const { region, numbers } = config;
  const { tally } = recorderOf(config);
  const keep = keeperOf(c, caller);
  const here = { providers, health, tally, region, numbers, now: clock, keep };
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
      outbox: (owner) => outboxes.getByName(ownShard(owner)),
    };
  }
  const home = config.peers.find((peer) => peer.region === caller.home);
  const called = calledBy(caller.keyHash, caller.shown);
  const { after } = c.get("timers");
  const at = { requestId: c.get("requestId"), now: clock, after, spentMs: c.get("admissionMs") };
  return {
    ...here,
    hold: async (wish) => {
      const reached = await authorizeAtHome(home, { ...called, hold: wish }, at);
      noteRefused(c, caller, reached);
      return showTokens(c, reached);
    },
    wallet: null,
    outbox: (owner) => outboxes.getByName(peerShard(caller.home, owner)),
  };
}

/** What home says has ended for good costs nobody a call from here on. */
function noteRefused(
  c: Context<AppEnv>,
  { keyHash: hash, shown }: Caller,
  { unanswered, ...reached }: Reached<unknown>,
): void {
  if (unanswered || !("result" in reached) || reached.result.ok) return;
  callersOf(c.get("config")).refused({ hash, shown }, reached.result.failure);
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
  { caller, refused }: Presumed,
  { wallet, request, after }: { wallet: () => Holding; request: HoldRequest; after: After },
): Promise<Reached<HoldGrant>> {
  const ask = async (): Promise<Result<HoldGrant>> => {
    const answer = await wallet().admitAndHold(caller.keyHash, request, caller.shown);
    if (!answer.ok) {
      refused(answer.failure);
      return answer;
    }
    const { admitted: rate, held } = answer.value;
    c.set("admitted", { caller, rate });
    return held;
  };
  return reachObject(ask, { after, attemptsMax: ATTEMPTS });
}

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
    noteRefused(c, admitted.caller, reached);
    if (reached.unanswered) return fail(c, reached.failure);
    if (!reached.result.ok) return fail(c, reached.result.failure);
  }
  await next();
  return undefined;
}
