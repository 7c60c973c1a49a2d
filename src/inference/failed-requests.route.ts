import type { Context, Next } from "hono";
import { routePath } from "hono/route";
import type { AppEnv } from "../http/context.ts";
import { anchorOf, wireOf } from "../http/failure-wire.ts";
import { Isolate } from "../http/isolate.ts";
import type { Config } from "../config.ts";
import type { Caller } from "../lib/caller.ts";
import { now } from "../lib/clock.ts";
import { ERROR_MESSAGE_MAX } from "../lib/failed-request.ts";
import type { FailedBatch, ToldError } from "../lib/failed-request.ts";
import type { Failure } from "../lib/failure.ts";
import { objectsOf } from "../contracts/objects.ts";
import { within } from "../lib/within.ts";
import { callPeer } from "../regions/peer-call.ts";
import type { Asked } from "../core/door.ts";
import { FailedRequests } from "./failed-requests.ts";
import type { Tell, Told } from "./failed-requests.ts";
import type { Run } from "./paid-request.ts";

const makeFailedRequests = ({ numbers }: Config): FailedRequests =>
  new FailedRequests(numbers.METRICS_DELAY_MS);

/** What a request asked for, as far as its body was understood. */
export type AskedFor = {
  readonly model: string | null;
  readonly externalId: string | null;
  readonly streamed: boolean;
};

/** What of a run is noted. */
type NotedRun = Pick<Run, "caller" | "progress" | "request" | "startedMs" | "timer">;

/** What a model may be called: whatever else stands in a body's `model` is not kept. */
const MODEL_NAME = /^[\w.:/@-]{1,128}$/;

/** Of what a door understood; never a word of its prompt. */
export function askedFor({ request, user }: Asked): AskedFor {
  const { model } = request.body;
  const streamed = request.kind === "chat" && request.body.stream === true;
  return { model: MODEL_NAME.test(model) ? model : null, externalId: user, streamed };
}

/**
 * Notes a request of a known key that was answered with an error, also in the midst of its stream, or whose client
 * left: its wallet is told of it in a while. Of a key that nobody here has met nothing is noted.
 */
export function noteFailed(c: Context<AppEnv>, asked: AskedFor | null, run: NotedRun | null): void {
  const error = errorOf(c, run);
  const caller = run?.caller ?? callerOf(c);
  if (error === null || caller === undefined) return;
  const { config, requestId: id, startedMs: at } = c.var;
  const failed = Isolate.of(config).get(makeFailedRequests);
  const { orgId, home, keyId } = caller;
  const common = { id, at, keyId, door: routePath(c), durationMs: now(c.env) - at, error };
  const { model: askedModel, externalId, streamed } = asked ?? NOTHING_ASKED;
  const come = { askedModel, model: askedModel, externalId, streamed, clientLeftMs: null };
  failed.note({ orgId, home }, { ...common, attempts: [], ...come, ...runFields(run) });
  failed.tellLater((work) => c.executionCtx.waitUntil(work), tellerOf(c));
}

const NOTHING_ASKED = { model: null, externalId: null, streamed: null };

/** What is known beside of one that was to be held for. */
function runFields(run: NotedRun | null) {
  if (run === null) return {};
  const { leftMs } = run.timer;
  return {
    model: run.request.model.id,
    attempts: run.progress.attempts,
    clientLeftMs: leftMs === null ? null : leftMs - run.startedMs,
  };
}

/** Whose request it is, as far as this isolate knows; also of a key that has died. */
function callerOf(c: Context<AppEnv>): Caller | undefined {
  return c.get("admitted")?.caller ?? c.get("met");
}

function errorOf(c: Context<AppEnv>, run: NotedRun | null): ToldError | null {
  const inStream = run?.progress.told ?? null;
  const failure = inStream ?? c.get("failed") ?? null;
  if (isLeft(run)) return LEFT;
  if (failure === null) return null;
  const wasAsked = run !== null && run.progress.attempts.length > 0;
  return toldOf(failure, { isStream: inStream !== null, wasAsked });
}

function isLeft(run: NotedRun | null): boolean {
  return run !== null && run.timer.leftMs !== null;
}

const LEFT: ToldError = {
  code: "client_left",
  message: "The client left before the answer was whole.",
  status: 499,
  param: null,
};

/** A failure in the words that its client was told, but for those of a provider or of the client itself. */
function toldOf(
  failure: Failure,
  { isStream, wasAsked }: { readonly isStream: boolean; readonly wasAsked: boolean },
): ToldError {
  const { status, message, param = null } = wireOf(ownWords(failure, wasAsked));
  return {
    code: anchorOf(failure),
    message: message.slice(0, ERROR_MESSAGE_MAX),
    status: isStream ? 200 : status,
    param: param?.slice(0, 100) ?? null,
  };
}

const REFUSED_THERE = "The model provider refused this request.";

function ownWords(failure: Failure, wasAsked: boolean): Failure {
  if (failure.kind === "invalid_request" && wasAsked) return { ...failure, message: REFUSED_THERE };
  const isNamed = failure.kind === "model_not_found" || failure.kind === "model_not_allowed";
  return isNamed && !MODEL_NAME.test(failure.model) ? { ...failure, model: "..." } : failure;
}

/** A reader waits so long for what this isolate has noted. */
const TOLD_WITHIN_MS = 1000;

/**
 * Before what reads requests or their errors, here or at home: what this isolate has noted of the caller's
 * organisation is told first.
 */
export async function tellFailedFirst(c: Context<AppEnv>, next: Next): Promise<void> {
  const failed = Isolate.of(c.var.config).get(makeFailedRequests);
  const told = failed.tellNow(c.var.admitted.caller.orgId, tellerOf(c));
  // A telling under way may be that of a request which was cancelled, and never end.
  await within(told, TOLD_WITHIN_MS, c.var.timers.after).catch(() => undefined);
  await next();
}

/** Tells the wallet here, or its home. */
function tellerOf(c: Context<AppEnv>): Tell {
  const { config, requestId } = c.var;
  const { env } = c; // not c: what waits must not keep its request
  return async ({ orgId, home }: Told, batch: FailedBatch) => {
    if (home === config.region) {
      return objectsOf(env).wallet(orgId).noteFailed(batch);
    }
    const peer = config.peers.find(({ region }) => region === home);
    if (peer === undefined) return null;
    const at = { requestId, now: () => now(env), attempts: 1 };
    return callPeer(peer, "failures", { org_id: orgId, batch }, at);
  };
}
