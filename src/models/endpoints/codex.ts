import type { Dialect } from "../../shared/http/dialect.ts";
import { errorResponseOf } from "../../shared/http/failure-mapping.ts";
import { elapsedMs } from "../../shared/clock.ts";
import type { Failure } from "../../shared/failure.ts";
import type { EndpointContext, ResponseHead } from "../core/endpoint-adapter.ts";
import { CONTEXT, responseStream } from "../protocols/responses/client-answer.ts";
import { echoedFields } from "../protocols/responses/client-response-object.ts";

/**
 * The errors for Codex (source: the SSE reader and `api_bridge` of codex-rs). After a 402 or 429, Codex retries
 * or silently drops a turn, and after a charged 5xx it would pay again. It therefore gets these
 * errors as a failed stream.
 */
export const codexDialect: Dialect = {
  error(failure, requestId) {
    const { status, code, headers } = errorResponseOf(failure);
    const isTold = status === 402 || status === 429 || code === CONTEXT;
    if (!isTold && failure.charged === undefined) return null;
    return {
      status: 200,
      headers: { ...headers, "content-type": "text/event-stream; charset=utf-8" },
      body: failedStream(failure, requestId),
    };
  },
  headers: () => ({}),
};

const CODEX = /^codex[\s_/-]/i;

/** Reports whether the client is Codex, which expects a stream and has its name in two headers. */
export function isCodexRequest(at: EndpointContext): boolean {
  const isNamed = ["originator", "user-agent"].some((name) => CODEX.test(at.header(name) ?? ""));
  return isNamed && at.header("accept")?.includes("text/event-stream") === true;
}

const UNREAD = "unknown";
const ASKING = {
  wanted: {
    shown: { summary: false, encrypted: false, logprobs: false },
    origins: new Map<string, never>(),
  },
  echo: echoedFields({ model: UNREAD, input: UNREAD }),
  isNative: false,
};

function failedStream(failure: Failure, requestId: string): string {
  const head: ResponseHead = {
    id: `resp_${requestId.slice("req_".length)}`,
    model: UNREAD,
    created: Math.floor(elapsedMs() / 1000),
    promptTokens: 1,
    keeps: false,
  };
  const stream = responseStream(head, ASKING);
  return stream.begin(null) + stream.fail(failure, null);
}
