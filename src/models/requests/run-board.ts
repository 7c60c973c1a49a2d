import { evictOldest } from "../../shared/evict-oldest.ts";
import type { StoppedRun, WatchedRun } from "../../shared/contracts/pauses.ts";
import type { Failure } from "../../shared/failure.ts";

/** Ms between two queries about all running requests of an organization. */
const INTERVAL_MS = 4000;
/** Ms after which a query counts as lost, for example because home is slow. */
export const ANSWER_MS = 2000;
const ENDED_MS = 3000;
const ASKED_MAX = 1000;
const ORGANIZATIONS_MAX = 1000;

type Running = {
  readonly runs: Map<string, { readonly run: WatchedRun; readonly tickedMs: number }>;
  stops: ReadonlyMap<string, Failure>;
  askedMs: number;
  isWaiting: boolean;
};

/** The result of a tick. `due` are the requests about which the caller must send a query now. */
type Tick = { readonly stop: Failure | null; readonly due: readonly WatchedRun[] | null };

/**
 * The long requests of an isolate, and the results about them. One query serves all requests of an
 * organization. All values are plain data, because a request can't use another's I/O.
 */
export class RunBoard {
  readonly #organizations = new Map<string, Running>();

  tick(orgId: string, run: WatchedRun, nowMs: number): Tick {
    const running = this.#of(orgId);
    const stop = running.stops.get(run.id) ?? null;
    if (stop !== null) {
      running.runs.delete(run.id);
      return { stop, due: null };
    }
    running.runs.set(run.id, { run, tickedMs: nowMs });
    const waitMs = running.isWaiting ? ANSWER_MS : INTERVAL_MS;
    if (nowMs - running.askedMs < waitMs) return { stop, due: null };
    running.askedMs = nowMs;
    running.isWaiting = true;
    for (const [id, { tickedMs }] of running.runs) {
      if (nowMs - tickedMs > ENDED_MS) running.runs.delete(id);
    }
    return { stop, due: [...running.runs.values()].slice(-ASKED_MAX).map((one) => one.run) };
  }

  answered(orgId: string, stops: readonly StoppedRun[]): void {
    const running = this.#of(orgId);
    running.isWaiting = false;
    running.stops = new Map(stops.map(({ id, failure }) => [id, failure]));
  }

  #of(orgId: string): Running {
    const known = this.#organizations.get(orgId);
    if (known !== undefined) return known;
    evictOldest(this.#organizations, ORGANIZATIONS_MAX);
    const fresh = { runs: new Map(), stops: new Map(), askedMs: -Infinity, isWaiting: false };
    this.#organizations.set(orgId, fresh);
    return fresh;
  }
}
