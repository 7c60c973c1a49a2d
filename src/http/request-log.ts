import type { Failure } from "../lib/failure.ts";
import { logEvent } from "../lib/log.ts";

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
  readonly failure: Failure["kind"] | null;
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
