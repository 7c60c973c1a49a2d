import { evictOldest } from "../../shared/evict-oldest.ts";
import type { StoppedRun, WatchedRun } from "../../shared/contracts/pauses.ts";
import type { Failure } from "../../shared/failure.ts";

/** Ms between two queries about all running requests of an organization. */
const QUERY_INTERVAL_MS = 4000;
/** Ms after which the next query is sent even without the result of the last one. */
const QUERY_RETRY_MS = 2000;
/** Maximum ms to wait for the result of a query. */
export const QUERY_TIMEOUT_MS = 3500;
const STALE_RUN_MS = 3000;
const QUERIED_RUNS_MAX = 1000;
const ORGANIZATIONS_MAX = 1000;

type OrganizationRuns = {
  readonly runs: Map<string, { readonly run: WatchedRun; readonly tickedMs: number }>;
  readonly stops: Map<string, Failure>;
  askedMs: number;
  isWaiting: boolean;
};

/** The result of a tick. `due` is the query that the caller must send now. */
type WatchTick = { readonly stop: Failure | null; readonly due: Query | null };
type Query = { readonly runs: readonly WatchedRun[]; readonly askedMs: number };

/**
 * Long requests of an isolate, and whether each must stop. One query covers an organization's
 * requests. Stores only plain data, because a request can't use another request's I/O.
 */
export class RunBoard {
  readonly #organizations = new Map<string, OrganizationRuns>();

  tick(orgId: string, run: WatchedRun, nowMs: number): WatchTick {
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
    const runs = [...running.runs.values()].slice(-QUERIED_RUNS_MAX).map((one) => one.run);
    return { stop, due: { runs, askedMs: nowMs } };
  }

  /** Adds a query's result. Only the newest query ends the wait. */
  addResult(orgId: string, { askedMs }: Query, stops: readonly StoppedRun[]): void {
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
