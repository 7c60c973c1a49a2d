import type { Config } from "../config/config.ts";
import type { Failure } from "../failure.ts";
import { logEvent } from "../log.ts";
import { Isolate } from "./isolate.ts";
import { SummedLine } from "./summed-line.ts";

/** A kind of failure; at a peer `home_404`, say, when the answer is home's, whose line names the kind. */
export type LoggedFailure = Failure["kind"] | `home_${number}`;

/** What is told of a request: ids and outcomes, never a key, prompt, answer, path or query value. */
type RequestRecord = {
  readonly requestId: string;
  readonly method: string;
  /** The route's pattern (`/v1/keys/:id`); ids in a path are the caller's data. */
  readonly route: string;
  readonly status: number;
  /** Until the answer's headers; a stream goes on after it. */
  readonly durationMs: number;
  readonly orgId: string | null;
  readonly keyId: string | null;
  readonly failure: LoggedFailure | null;
};

/** One structured line per request. */
export function logRequest(record: RequestRecord): void {
  logEvent("request", {
    request_id: record.requestId,
    method: record.method,
    route: record.route,
    status: record.status,
    duration_ms: record.durationMs,
    org_id: record.orgId,
    key_id: record.keyId,
    failure: record.failure,
  });
}

/** What anybody can make as often as they like, with a key or without: no key, no such thing, too often. */
const SUMMED: ReadonlySet<number> = new Set([401, 404, 429]);

const makeLine = (): SummedLine => new SummedLine("requests_refused");

/**
 * Counts a refusal in the line that sums them, a second each; false for what has a line of its own: any other
 * status, and every request where LOG_REQUESTS is `all`.
 */
export function isSummed(
  config: Config | undefined,
  {
    status,
    failure,
    ...request
  }: Pick<RequestRecord, "requestId" | "route" | "status" | "orgId"> & {
    readonly failure: string | null;
  },
  nowMs: number,
): boolean {
  if (config === undefined || config.logRequests === "all" || !SUMMED.has(status)) return false;
  Isolate.of(config)
    .get(makeLine)
    .add(failure ?? String(status), nowMs, {
      last_request_id: request.requestId,
      last_route: request.route,
      last_org_id: request.orgId,
    });
  return true;
}
