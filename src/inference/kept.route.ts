import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import { BODY_BYTES_MAX } from "../http/read-json.ts";
import type { PeerConfig } from "../config.ts";
import type { KeptAnswer, KeptCalls, RecallAsked, Recalled } from "../kept/kept-contract.ts";
import { textsOf } from "../kept/kept-items.ts";
import { continuedBy, keptBy } from "../kept/seen-by.ts";
import { calledBy } from "../lib/caller.ts";
import type { Caller } from "../lib/caller.ts";
import { now } from "../lib/clock.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import type { Slot } from "../lib/in-flight.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { logWarning } from "../lib/log.ts";
import { reachObject } from "../lib/reach-object.ts";
import { recorderOf } from "../metrics/count-requests.route.ts";
import { callPeer } from "../regions/peer-call.ts";
import { keptBody, readKeptAnswer } from "./kept-wire.ts";
import type { KeptRequest } from "./kept-wire.ts";
import type { Run } from "./paid-request.ts";

/** For both attempts of a call to home: who is asked may wait for an answer that is on its way there. */
const HOME_MS = 5000;
/** Pauses between the attempts to keep an answer, within what the platform gives after the last byte. */
const PAUSES_MS: readonly number[] = [500, 3000];

/** `bytes`: of the body that names it. */
type Asking = {
  readonly c: Context<AppEnv>;
  readonly slot: Slot | undefined;
  readonly bytes: number;
};
type NotRecalled = Refusal | { readonly ok: false; readonly shed: "bytes" };

/**
 * What a request names of kept answers, with room for it, once the key is admitted: what a caller may see depends on
 * its limits. Home away, or an object that does not answer: 503.
 */
export async function recall(
  { c, slot, bytes }: Asking,
  asked: RecallAsked,
): Promise<NotRecalled | { readonly ok: true; readonly value: Recalled }> {
  const presumed = c.get("presumed");
  const admission = presumed === undefined ? null : await presumed.admit();
  c.set("presumed", undefined); // its place in its minute is taken
  if (admission !== null && !admission.ok) return admission;
  const { admitted, config } = c.var;
  const { caller } = admitted;
  const isAtHome = caller.home === config.region;
  const found = isAtHome
    ? await reachedKept(c, caller, (kept) => kept.recall(asked, continuedBy(admitted)))
    : await recallAtHome(c, caller, asked);
  if (!found.ok) return found;
  const more = textsOf(found.value).reduce((sum, text) => sum + text.length, 0);
  if (bytes + more > BODY_BYTES_MAX) {
    return refuse({ kind: "body_too_large", bytesMax: BODY_BYTES_MAX });
  }
  return slot?.grow(more) === "bytes" ? { ok: false, shed: "bytes" } : found;
}

async function reachedKept<T>(
  c: Context<AppEnv>,
  { orgId }: Caller,
  call: (kept: KeptCalls) => Promise<Result<T>>,
): Promise<Result<T>> {
  const objects = inJurisdiction(c.env.KEPT_RESPONSES, c.var.config.jurisdiction);
  const reached = await reachObject(() => call(objects.getByName(orgId)));
  return reached.unanswered ? refuse(reached.failure) : reached.result;
}

async function recallAtHome(
  c: Context<AppEnv>,
  caller: Caller,
  asked: RecallAsked,
): Promise<Result<Recalled>> {
  const answer = await askHome(c, caller, { recall: asked, keep: null });
  if (!answer.ok) return answer;
  return answer.value === null
    ? refuse({ kind: "home_region_unreachable" })
    : success(answer.value);
}

async function askHome(
  c: Context<AppEnv>,
  caller: Caller,
  request: Omit<KeptRequest, "called">,
): Promise<Result<Recalled | null>> {
  const { config, requestId } = c.var;
  const home: PeerConfig | undefined = config.peers.find((peer) => peer.region === caller.home);
  const called = calledBy(caller.keyHash, caller.shown);
  const at = { requestId, now: () => now(c.env), budgetMs: HOME_MS };
  const answer =
    home === undefined ? null : await callPeer(home, "kept", keptBody({ called, ...request }), at);
  const said = answer === null ? null : readKeptAnswer(answer.body);
  return said ?? refuse({ kind: "home_region_unreachable" });
}

/**
 * Keeps answers of this caller at its home, in a few attempts; one that cannot be kept is given up, counted and
 * logged without what it says. Never throws.
 */
export function keeperOf(c: Context<AppEnv>, caller: Caller): Run["services"]["keep"] {
  const isAtHome = caller.home === c.var.config.region;
  const attempt = (answer: Omit<KeptAnswer, "by">): Promise<Result<unknown>> =>
    isAtHome
      ? reachedKept(c, caller, (kept) => kept.keep({ ...answer, by: keptBy(caller) }))
      : askHome(c, caller, { recall: null, keep: answer });
  return async (answer) => {
    let kept = await attempt(answer);
    for (const pauseMs of PAUSES_MS) {
      if (kept.ok || kept.failure.kind === "invalid_request") break;
      // oxlint-disable-next-line no-await-in-loop -- the pause between attempts
      await scheduler.wait(pauseMs);
      // oxlint-disable-next-line no-await-in-loop -- each attempt follows the failure of the one before
      kept = await attempt(answer);
    }
    if (kept.ok) return;
    recorderOf(c.var.config).tally.count("unkept");
    logWarning("response_not_kept", { request_id: c.var.requestId, reason: kept.failure.kind });
  };
}
