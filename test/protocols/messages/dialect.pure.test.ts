import { expect, test } from "vitest";
import { toClientMessage } from "../../../src/models/protocols/messages/client-answer.ts";
import { messagesDialect } from "../../../src/models/protocols/messages/client-dialect.ts";
import { CALLER_CASES } from "../../http/failure-cases.ts";
import type { Cases } from "../../http/failure-cases.ts";
import { LIMIT_CASES } from "../../http/limit-cases.ts";
import { refusal as refusalSchema } from "./message-schemas.ts";

const FAILURES: Cases = { ...CALLER_CASES, ...LIMIT_CASES };
/** Error types by status, as in Anthropic's documentation (platform.claude.com, API errors). */
const TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  405: "invalid_request_error",
  408: "timeout_error",
  409: "conflict_error",
  413: "request_too_large",
  415: "invalid_request_error",
  422: "invalid_request_error",
  429: "rate_limit_error",
  500: "api_error",
  502: "api_error",
  503: "overloaded_error",
  529: "overloaded_error",
};

test("every failure is mapped to a Messages error type, retry-after and x-should-retry", () => {
  const seen = new Set<number>();
  for (const [failure, status, , headers = {}] of Object.values(FAILURES).flat()) {
    const response = messagesDialect.error(failure, `req_${"a".repeat(24)}`);
    const { error } = refusalSchema.parse(response?.body);
    expect([error.type, response?.status]).toEqual([
      TYPES[response?.status ?? 0],
      status === 503 && failure.kind !== "home_region_unreachable" ? 529 : status,
    ]);
    expect(response?.headers).toMatchObject(headers);
    seen.add(response?.status ?? 0);
  }
  expect([...seen].toSorted((a, b) => a - b)).toEqual(Object.keys(TYPES).map(Number));
});

const CALL = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
test.each([
  ["stop", {}, "end_turn"],
  ["stop", { tool_calls: [CALL] }, "tool_use"],
  ["tool_calls", { tool_calls: [CALL] }, "tool_use"],
  ["length", { content: "a" }, "max_tokens"],
  ["length", { tool_calls: [CALL] }, "max_tokens"],
  ["content_filter", {}, "refusal"],
  ["stop", { refusal: "No." }, "refusal"],
])(
  "a choice that ends by %s with %j has the stop reason %s",
  (finish_reason, message, expected) => {
    const clientMessage = toClientMessage({ choices: [{ finish_reason, message }] }, new Map());
    expect(clientMessage.stop_reason).toBe(expected);
    const explanation = "refusal" in message ? message.refusal : null;
    const isRefused = expected === "refusal";
    expect(clientMessage.stop_details).toEqual(
      isRefused ? { type: "refusal", category: null, explanation } : null,
    );
  },
);
