import type { Failure } from "../lib/failure.ts";
import { logEvent } from "../lib/log.ts";

/** A kind of failure; at a peer `home_404`, say, when the answer is home's, whose line names the kind. */
export type LoggedFailure = Failure["kind"] | `home_${number}`;

/** What is told of a request: ids and outcomes, never a key, prompt, answer, path or query value. */
export type RequestRecord = {
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
