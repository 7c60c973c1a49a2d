import type { Config } from "../config/config.ts";
import type { Failure } from "../failure.ts";
import { logWarning } from "../log.ts";
import type { LogFields } from "../log.ts";
import { Isolate } from "./isolate.ts";

export type LoggedFailure = Failure["kind"] | `home_${number}`;

/** A rejected request in the summary line. `route` is a pattern without client data. */
type RejectedRequest = {
  readonly requestId: string;
  readonly route: string;
  readonly status: number;
  readonly orgId: string | null;
  readonly failure: string | null;
};

const SUMMARIZED_STATUSES: ReadonlySet<number> = new Set([401, 404, 429]);

const createSummaryLine = (): SummaryLogLine => new SummaryLogLine("requests_refused");

/**
 * Counts a rejected request in the summary line. Returns false if the request needs its own line.
 */
export function countInSummaryLine(
  config: Config | undefined,
  { status, failure, ...request }: RejectedRequest,
  nowMs: number,
): boolean {
  if (config === undefined || config.logRequests === "all" || !SUMMARIZED_STATUSES.has(status)) {
    return false;
  }
  Isolate.of(config)
    .get(createSummaryLine)
    .add(failure ?? String(status), nowMs, {
      last_request_id: request.requestId,
      last_route: request.route,
      last_org_id: request.orgId,
    });
  return true;
}

const LINE_INTERVAL_MS = 1000;

/** Counts events, and logs the counts at most once a second. */
export class SummaryLogLine {
  readonly #event: string;
  #lastLineMs = -Infinity;
  #counts: Record<string, number> = {};

  constructor(event: string) {
    this.#event = event;
  }

  add(name: string, nowMs: number, last: LogFields): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + 1;
    // The absolute difference counts, because the clock may step back.
    if (Math.abs(nowMs - this.#lastLineMs) < LINE_INTERVAL_MS) return;
    logWarning(this.#event, { ...this.#counts, ...last });
    this.#lastLineMs = nowMs;
    this.#counts = {};
  }
}
