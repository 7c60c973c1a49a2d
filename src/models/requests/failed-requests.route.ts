import type { Context, Next } from "hono";
import { routePath } from "hono/route";
import type { AppEnv } from "../../shared/http/context.ts";
import { anchorOf, errorResponseOf } from "../../shared/http/failure-mapping.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import type { Config } from "../../shared/config/config.ts";
import type { Caller } from "../../shared/caller.ts";
import { HOUR_MS, elapsedMs, now } from "../../shared/clock.ts";
import {
  BATCH_COUNTS_MAX,
  BATCH_REQUESTS_MAX,
  ERROR_MESSAGE_MAX,
} from "../../shared/failed-request.ts";
import type {
  FailedBatch,
  FailedRequest,
  FailureCount,
  ReportedError,
} from "../../shared/failed-request.ts";
import type { Failure } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { within } from "../../shared/timers.ts";
import { callPeer } from "../../regions/peer-call.ts";
import type { ParsedRequest } from "../core/endpoint-adapter.ts";
import type { Run } from "./paid-request.ts";
import { logWarning, reasonOf } from "../../shared/log.ts";
import type { Region } from "../../shared/regions.ts";

/** Whose wallet is told, and where it is. */
type Told = { readonly orgId: string; readonly home: Region };
/** Tells a wallet, once; throws where it was not heard. */
type Tell = (to: Told, batch: FailedBatch) => Promise<unknown>;

const ORGANIZATIONS_MAX = 500;
const TELL_TIMEOUT_MS = 5000;
/** The platform ends a waitUntil at 30 s, and whoever waits in it. */
const LOST_AFTER_MS = 30_000;

type Waiting = {
  readonly to: Told;
  readonly requests: FailedRequest[];
  readonly counts: Map<string, FailureCount>;
};

/**
 * The failed requests that an isolate has not told their wallets of: the newest by themselves, all of them as
 * counts. Told `delayMs` after the first, together, so that a storm of refusals is a call in that time; or as soon as
 * somebody reads here. What an isolate that dies had not told is lost: it is no money.
 */
class FailedRequests {
  readonly #delayMs: number;
  readonly #waiting = new Map<string, Waiting>();
  /** When the wait for the next telling began, `elapsedMs`; never while nobody waits. */
  #begunMs = -Infinity;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  note(to: Told, request: FailedRequest): void {
    const known = this.#waiting.get(to.orgId);
    if (known === undefined && this.#waiting.size >= ORGANIZATIONS_MAX) return;
    const waiting: Waiting = known ?? { to, requests: [], counts: new Map() };
    this.#waiting.set(to.orgId, waiting);
    waiting.requests.push(request);
    if (waiting.requests.length > BATCH_REQUESTS_MAX) waiting.requests.shift();
    const { id: lastId, at: lastAt, keyId, error } = request;
    const hour = lastAt - (lastAt % HOUR_MS);
    const name = `${hour} ${keyId} ${error.code} ${error.status}`;
    const before = waiting.counts.get(name)?.count ?? 0;
    if (before === 0 && waiting.counts.size >= BATCH_COUNTS_MAX) return;
    const { code, status } = error;
    waiting.counts.set(name, { hour, keyId, code, status, count: before + 1, lastAt, lastId });
  }

  /** Has everything told in a while, unless that is under way; `waitUntil` keeps the isolate for it. */
  tellLater(waitUntil: (work: Promise<unknown>) => void, tell: Tell): void {
    if (this.#waiting.size === 0) return;
    if (Math.abs(elapsedMs() - this.#begunMs) <= this.#delayMs + LOST_AFTER_MS) return;
    this.#begunMs = elapsedMs();
    waitUntil(this.#later(tell));
  }

  async #later(tell: Tell): Promise<void> {
    await scheduler.wait(this.#delayMs);
    this.#begunMs = -Infinity;
    await Promise.all([...this.#waiting.keys()].map((orgId) => this.tellNow(orgId, tell)));
  }

  /**
   * Returns once what was noted of an organization is told, or could not be. What another request is telling is not
   * waited for: a promise belongs to the request that made it.
   */
  async tellNow(orgId: string, tell: Tell): Promise<void> {
    const waiting = this.#waiting.get(orgId);
    this.#waiting.delete(orgId);
    if (waiting !== undefined) await toldOnce(waiting, tell);
  }
}

async function toldOnce({ to, requests, counts }: Waiting, tell: Tell): Promise<void> {
  try {
    await within(tell(to, { requests, counts: [...counts.values()] }), TELL_TIMEOUT_MS);
  } catch (error) {
    // Not again: the lost call may have arrived, and a count must never be twice the truth.
    const reason = reasonOf(error);
    logWarning("failures_not_taken", { org_id: to.orgId, requests: requests.length, reason });
  }
}

const makeFailedRequests = ({ numbers }: Config): FailedRequests =>
  new FailedRequests(numbers.METRICS_DELAY_MS);

/** What a request asked for, as far as its body was understood. */
export type RequestSummary = {
  readonly model: string | null;
  readonly externalId: string | null;
  readonly streamed: boolean;
};

/** What of a run is noted. */
type NotedRun = Pick<Run, "caller" | "progress" | "request" | "startedMs" | "timer">;

/** What a model may be called: whatever else stands in a body's `model` is not kept. */
const MODEL_NAME = /^[\w.:/@-]{1,128}$/;

/** Of what a door understood; never a word of its prompt. */
export function summarizeRequest({ request, user }: ParsedRequest): RequestSummary {
  const { model } = request.body;
  const streamed = request.kind === "chat" && request.body.stream === true;
  return { model: MODEL_NAME.test(model) ? model : null, externalId: user, streamed };
}

/**
 * Notes a request of a known key that was answered with an error, also in the midst of its stream, or whose client
 * left: its wallet is told of it in a while. Of a key that nobody here has met nothing is noted.
 */
export function recordFailedRequest(
  c: Context<AppEnv>,
  asked: RequestSummary | null,
  run: NotedRun | null,
): void {
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

function errorOf(c: Context<AppEnv>, run: NotedRun | null): ReportedError | null {
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

const LEFT: ReportedError = {
  code: "client_left",
  message: "The client left before the answer was whole.",
  status: 499,
  param: null,
};

/** A failure in the words that its client was told, but for those of a provider or of the client itself. */
function toldOf(
  failure: Failure,
  { isStream, wasAsked }: { readonly isStream: boolean; readonly wasAsked: boolean },
): ReportedError {
  const { status, message, param = null } = errorResponseOf(ownWords(failure, wasAsked));
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
 * organization is told first.
 */
export async function flushFailedFirst(c: Context<AppEnv>, next: Next): Promise<void> {
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
