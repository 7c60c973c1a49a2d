import type { ProviderFailure } from "../provider.ts";

/** What a broken upstream puts on the wire: a status, its body, and the retry hint of its headers. */
type WireAnswer = {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs?: number;
};

/** The failure that an upstream which never answers comes to, or null when this one is not such. */
export function faultOf(upstreamId: string): ProviderFailure | null {
  const answer = WIRE_ANSWERS.get(upstreamId);
  return answer === undefined ? null : readFault(answer);
}

const WIRE_ANSWERS: ReadonlyMap<string, WireAnswer> = new Map([
  ["status-408", { status: 408, text: errorBody("The request timed out.") }],
  ["status-429", { status: 429, text: errorBody("Slow down."), retryAfterMs: 2000 }],
  ["status-500", { status: 500, text: errorBody("The server had an error.") }],
  ["status-503", { status: 503, text: errorBody("The engine is overloaded.") }],
  // A real host quotes the key it was sent; this one stands for ours and must never be seen again.
  [
    "echo-key-401",
    { status: 401, text: errorBody("Incorrect API key: sk-canary-4f1d0c7be2a94e5d8c6b3a1f.") },
  ],
  ["html", { status: 200, text: "<!doctype html><title>Welcome</title><h1>It works</h1>" }],
  ["bad-json", { status: 200, text: '{"id":"chatcmpl-sandbox","choices":[{"index":0,"mess' }],
]);

/** As an adapter reads it: by status and by whether the body is JSON. The text goes no further. */
function readFault(answer: WireAnswer): ProviderFailure {
  const reason = String(answer.status);
  const { retryAfterMs } = answer;
  const hint = retryAfterMs === undefined ? {} : { retryAfterMs };
  switch (answer.status) {
    case 401:
      return { kind: "disabled", reason };
    case 429:
    case 503:
      return { kind: "overloaded", reason, ...hint };
    case 200:
      return { kind: "retry", reason: isJson(answer.text) ? "bad_shape" : "bad_body" };
    default:
      return { kind: "retry", reason, ...hint };
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function errorBody(message: string): string {
  return JSON.stringify({ error: { message, type: "api_error", param: null, code: null } });
}
