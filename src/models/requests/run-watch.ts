import { evictOldest } from "../../shared/evict-oldest.ts";
import type { StoppedRequest, StoppableRequest } from "../../shared/contracts/pauses.ts";
import type { Failure } from "../../shared/failure.ts";
import * as z from "zod/mini";
import {
  credentialFromJson,
  presentedSecretFields,
  presentedSecretToJson,
} from "../../accounts/keys/session-token.ts";
import { createRequestCredential } from "../../shared/caller.ts";
import type { Caller } from "../../shared/caller.ts";
import { elapsedMs } from "../../shared/clock.ts";
import { peerFailureSchema } from "../../shared/failure.ts";
import { keyHashSchema } from "../../shared/key.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import type { Timers } from "../../shared/timers.ts";
import type { RunTimer } from "./run-timer.ts";

/** Ms between queries, each about all running requests of an organization. */
const QUERY_INTERVAL_MS = 4000;
/** Ms to wait for a query's result before sending the next query. */
const QUERY_RETRY_MS = 2000;
/** Maximum ms to wait for a query for stopped requests. */
export const STOP_QUERY_TIMEOUT_MS = 3500;
const STALE_RUN_MS = 3000;
/**
 * Maximum requests per query, because a query's body is limited to 1 MiB. The next query begins
 * with the remaining requests.
 */
const QUERIED_RUNS_MAX = 1000;
const ORGANIZATIONS_MAX = 1000;

type OrganizationRuns = {
  readonly runs: Map<string, { readonly run: StoppableRequest; readonly tickedMs: number }>;
  readonly stops: Map<string, Failure>;
  askedMs: number;
  isWaiting: boolean;
};

/** The result of a tick. `due` is the query that the caller must send now. */
type WatchTick = { readonly stop: Failure | null; readonly due: Query | null };
type Query = { readonly runs: readonly StoppableRequest[]; readonly askedMs: number };

/**
 * Long requests of an isolate, and whether each must stop. One query covers an organization's
 * requests. Stores only plain data, because a request can't use another request's I/O.
 */
export class LongRuns {
  readonly #organizations = new Map<string, OrganizationRuns>();

  tick(orgId: string, run: StoppableRequest, nowMs: number): WatchTick {
    const running = this.#runsOf(orgId);
    const stop = running.stops.get(run.id) ?? null;
    if (stop !== null) {
      running.runs.delete(run.id);
      running.stops.delete(run.id);
      return { stop, due: null };
    }
    running.runs.set(run.id, { run, tickedMs: nowMs });
    const waitMs = running.isWaiting ? QUERY_RETRY_MS : QUERY_INTERVAL_MS;
    if (nowMs - running.askedMs < waitMs) return { stop, due: null };
    running.askedMs = nowMs;
    running.isWaiting = true;
    for (const [id, { tickedMs }] of running.runs) {
      if (nowMs - tickedMs > STALE_RUN_MS) running.runs.delete(id);
    }
    for (const id of running.stops.keys()) if (!running.runs.has(id)) running.stops.delete(id);
    const queried = [...running.runs].slice(0, QUERIED_RUNS_MAX);
    for (const [id, one] of queried) {
      running.runs.delete(id);
      running.runs.set(id, one); // moves the run to the end, so the next query starts with others
    }
    return { stop, due: { runs: queried.map(([, one]) => one.run), askedMs: nowMs } };
  }

  /** Adds a query's result. Only the newest query's result ends the wait. */
  addResult(orgId: string, { askedMs }: Query, stops: readonly StoppedRequest[]): void {
    const running = this.#runsOf(orgId);
    if (askedMs === running.askedMs) running.isWaiting = false;
    for (const { id, failure } of stops) running.stops.set(id, failure);
  }

  #runsOf(orgId: string): OrganizationRuns {
    const known = this.#organizations.get(orgId);
    if (known !== undefined) return known;
    evictOldest(this.#organizations, ORGANIZATIONS_MAX);
    const newRuns = { runs: new Map(), stops: new Map(), askedMs: -Infinity, isWaiting: false };
    this.#organizations.set(orgId, newRuns);
    return newRuns;
  }
}

/** Age in ms from which a request is watched. Shorter requests cause no calls. */
const WATCH_AFTER_MS = 6000;
const TICK_MS = 1000;

/** Returns the requests that must end. */
export type FindRequestsToStop = (
  runs: readonly StoppableRequest[],
) => Promise<readonly StoppedRequest[]>;

type RunToWatch = {
  readonly id: string;
  readonly caller: Caller;
  readonly timers: Timers;
  readonly timer: RunTimer;
  readonly board: LongRuns;
  readonly ask: FindRequestsToStop;
  /** Keeps a query running after the request that sent the query has ended. */
  readonly waitUntil: (work: Promise<unknown>) => void;
};

/**
 * Ends a running request within 15 s after a pause with `stop_running`, or after its key or session
 * ends.
 */
export function watchRun({ id, caller, timers, timer, board, ask, waitUntil }: RunToWatch): void {
  const { orgId } = caller;
  const run = { id, called: createRequestCredential(caller.keyHash, caller.shown) };
  const logFailure = (error: unknown): void => {
    logWarning("running_requests_unwatched", { org_id: orgId, reason: errorMessageOf(error) });
  };
  const tick = (): void => {
    const { stop, due } = board.tick(orgId, run, elapsedMs());
    if (stop !== null) return timer.halt(stop);
    timers.after(TICK_MS, tick);
    if (due === null) return;
    waitUntil(ask(due.runs).then((stops) => board.addResult(orgId, due, stops), logFailure));
  };
  timers.after(WATCH_AFTER_MS, tick);
}

const requestSchema = z.object({
  org_id: z.string().check(z.minLength(1), z.maxLength(64)),
  runs: z.array(z.object({ id: z.string(), key_hash: keyHashSchema, ...presentedSecretFields })),
});

export function stopQueryToJson(orgId: string, runs: readonly StoppableRequest[]): object {
  return {
    org_id: orgId,
    runs: runs.map(({ id, called }) => {
      return { id, key_hash: called.keyHash, ...presentedSecretToJson(called) };
    }),
  };
}

/** Parses a peer's query about requests that must end. Returns null if the query is invalid. */
export function parseStopQuery(
  body: unknown,
): { readonly orgId: string; readonly runs: readonly StoppableRequest[] } | null {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) return null;
  const { org_id: orgId, runs } = parsed.data;
  return {
    orgId,
    runs: runs.map((one) => ({ id: one.id, called: credentialFromJson(one.key_hash, one) })),
  };
}

const responseSchema = z.object({
  stops: z.array(z.object({ id: z.string(), failure: peerFailureSchema })),
});

export function parseStoppedRequests(body: unknown): readonly StoppedRequest[] | null {
  const parsed = responseSchema.safeParse(body);
  return parsed.success ? parsed.data.stops : null;
}
