import type { Dialect, ErrorAnswer } from "./dialect.ts";
import { wireOf } from "./failure-wire.ts";
import type { Wire } from "./failure-wire.ts";
import type { Failure } from "../lib/failure.ts";

/** The `error` object of every refusal; all four keys always present. */
export type ErrorObject = {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  readonly retry_after?: number;
  readonly balance_micro?: number;
  readonly required_micro?: number;
  readonly generation_id?: string;
  readonly key_id?: string;
};

/** A failure as the client gets it, in its path's dialect: `{"error": ...}` of OpenAI's without one. */
export function failureResponse(
  failure: Failure,
  requestId: string,
  dialect: Dialect | null = null,
): Response {
  const { status, headers, body } = dialect?.error(failure, requestId) ?? openAiError(failure);
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      "content-type": "application/json",
      "x-request-id": requestId,
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
      ...headers,
    },
  });
}

function openAiError(failure: Failure): ErrorAnswer {
  const wire = wireOf(failure);
  return { status: wire.status, headers: wire.headers ?? {}, body: { error: errorOf(wire) } };
}

/** The `error` object alone: what a stream's error event carries once the status has been sent. */
export function failureObject(failure: Failure): ErrorObject {
  return errorOf(wireOf(failure));
}

function errorOf(wire: Wire): ErrorObject {
  const { message, type, param, code } = wire;
  return { message, type, param: param ?? null, code: code ?? null, ...wire.extra };
}
