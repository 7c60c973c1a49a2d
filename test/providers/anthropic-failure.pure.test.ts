import { describe, expect, it } from "vitest";
import { createAnthropicProvider } from "../../src/models/providers/anthropic.ts";
import type { ProviderFailure } from "../../src/models/core/provider.ts";
import {
  ANTHROPIC_FAILURES,
  START,
  endEvents,
  errorReply,
  jsonReply,
  messageReply,
  streamReply,
} from "../fixtures/anthropic-replies.ts";
import { CANARY, CANARY_TEXT } from "../fixtures/reply-scenarios.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { answerTo, eventsOf } from "./adapter-kit.ts";

const PROVIDER = createAnthropicProvider({
  baseUrl: "https://upstream.test/v1",
  secret: CANARY.key,
  geo: null,
});

async function failure(reply: RawReply, asStream = false): Promise<ProviderFailure> {
  const { answer } = await answerTo(PROVIDER, { stream: asStream }, reply);
  if (answer.kind !== "failure") throw new Error(`no failure: ${JSON.stringify(answer)}`);
  return answer.failure;
}

const EXPECTED: Readonly<Record<string, object>> = {
  "400 bad": { kind: "refused", code: null, message: expect.stringMatching(/^messages\.0: unk/) },
  "400 context": {
    kind: "refused",
    code: "context_length_exceeded",
    param: "messages",
    message: expect.stringContaining("prompt is too long: 209752 tokens > 200000 maximum"),
  },
  "400 credit": { kind: "disabled", reason: "credit_balance" },
  "401": { kind: "disabled" },
  "402": { kind: "disabled" },
  "403": { kind: "disabled" },
  "404": { kind: "disabled" },
  "409": { kind: "retry", again: false },
  "413": { kind: "refused", message: "The model's provider rejected this request." },
  "429": { kind: "overloaded", retryAfterMs: 7000 },
  "500": { kind: "retry", again: true },
  "504": { kind: "retry", again: true },
  "529": { kind: "overloaded" },
};

describe.each(Object.entries(ANTHROPIC_FAILURES.errors))(
  "the recorded Anthropic error %s",
  (name, reply) => {
    it("results in the same failure for JSON and streams", async () => {
      for (const asStream of [false, true]) {
        const result = await failure(reply, asStream);
        expect(result).toMatchObject({ reason: String(reply.status), ...EXPECTED[name] });
      }
    });

    it("results in a failure without the gateway's key, Anthropic's host or the operator's account", async () => {
      const text = JSON.stringify(await failure(reply));
      // A rejection keeps its cleaned text. Other failures keep none.
      const words = text.includes('"refused"') ? [] : [CANARY.text];
      for (const part of [CANARY.key, CANARY.host, CANARY.account, ...words]) {
        expect(text).not.toContain(part);
      }
    });
  },
);

it("the Anthropic adapter emits no end event for a truncated stream, and marks its usage as partial", async () => {
  const events = await eventsOf(PROVIDER, {}, ANTHROPIC_FAILURES.cut);
  expect(events.map(({ kind }) => kind)).toEqual(["usage", "chunk", "text"]);
  expect(events[0]).toMatchObject({ partial: true, usage: { input: 8, cacheRead: 4 } });
});

it.each([
  ["invalid_request_error", "refused"],
  ["authentication_error", "disabled"],
  ["billing_error", "disabled"],
  ["permission_error", "disabled"],
  ["not_found_error", "disabled"],
  ["conflict_error", "retry"],
  ["request_too_large", "refused"],
  ["rate_limit_error", "overloaded"],
  ["api_error", "retry"],
  ["timeout_error", "retry"],
  ["overloaded_error", "overloaded"],
  ["something_new", "retry"],
])("the Anthropic adapter treats %s inside a 200 as %s", async (type, kind) => {
  const { body, headers } = errorReply(200, type);
  expect(await failure({ headers, body })).toMatchObject({ kind });
  const [first] = await eventsOf(PROVIDER, {}, streamReply(String(body)));
  expect(first).toMatchObject({ kind: "error", failure: { kind } });
});

it.each(["contract_spend_limit_reached", "enforced_spend_limit_reached"])(
  "the Anthropic adapter treats %s as an account without credits, not as a temporary limit",
  async (code) => {
    const words = "You have reached your API usage limits. You will regain access on 2026-12-01.";
    const body = `{"type":"error","error":{"type":"rate_limit_error","message":"${words}","details":{"error_code":"${code}"}}}`;
    const spent = { kind: "disabled", reason: code };
    for (const asStream of [false, true]) {
      expect(await failure(jsonReply(body, 429), asStream)).toEqual(spent);
    }
    const [first] = await eventsOf(PROVIDER, {}, streamReply(body));
    expect(first).toEqual({ kind: "error", failure: spent });
  },
);

it("the Anthropic adapter treats a temporary limit as an overload, whatever details the error contains", async () => {
  const body = `{"type":"error","error":{"type":"rate_limit_error","message":"enforced_spend_limit_reached","details":{"error_code":"something_else"}}}`;
  expect(await failure(jsonReply(body, 429))).toMatchObject({ kind: "overloaded" });
});

it("the Anthropic adapter keeps a route enabled if an error quotes 'credit balance is too low' from the request", async () => {
  const quoted = "messages.0: 'Your credit balance is too low' is not allowed";
  expect(await failure(errorReply(400, "invalid_request_error", quoted))).toMatchObject({
    kind: "refused",
  });
});

it("the Anthropic adapter returns a rejection's text without the gateway's key, Anthropic's host or the operator's account", async () => {
  const details = `{"type":"refusal","category":"cyber","explanation":${JSON.stringify(CANARY_TEXT)}}`;
  const { answer } = await answerTo(PROVIDER, {}, messageReply("", "refusal", 3, details));
  const events = await eventsOf(
    PROVIDER,
    {},
    streamReply(START, ...endEvents("refusal", 3, details)),
  );
  for (const text of [JSON.stringify(answer), JSON.stringify(events)]) {
    expect(text).toContain(CANARY.text);
    for (const part of [CANARY.key, CANARY.host, CANARY.account]) expect(text).not.toContain(part);
  }
  expect(answer).toMatchObject({ body: { choices: [{ message: { content: null } }] } });
});

const DATE = "Sat, 21 Nov 2026 12:00:00 GMT";

it.each([
  ["one exhausted limit", { "tokens-remaining": "0", "tokens-reset": at(9) }, 9000],
  [
    "the last reset of two exhausted limits",
    {
      "requests-remaining": "0",
      "requests-reset": at(3),
      "input-tokens-remaining": "0",
      "input-tokens-reset": at(40),
    },
    40_000,
  ],
  [
    "no wait for a limit with capacity left",
    { "tokens-remaining": "5", "tokens-reset": at(9) },
    null,
  ],
  ["no wait for an invalid reset time", { "tokens-remaining": "0", "tokens-reset": "soon" }, null],
])(
  "the Anthropic adapter derives the wait after a 429 without retry-after from the limits: %s",
  async (_, limits, wait) => {
    const headers: Record<string, string> = { "content-type": "application/json", date: DATE };
    for (const [name, value] of Object.entries(limits)) {
      headers[`anthropic-ratelimit-${name}`] = value;
    }
    const { retryAfterMs = null } = await failure({
      ...errorReply(429, "rate_limit_error"),
      headers,
    });
    expect(retryAfterMs).toBe(wait);
  },
);

it("the Anthropic adapter uses retry-after instead of the reset times of the limits", async () => {
  const headers = {
    "retry-after": "2",
    date: DATE,
    "anthropic-ratelimit-tokens-remaining": "0",
    "anthropic-ratelimit-tokens-reset": at(50),
  };
  const reply = { ...errorReply(429, "rate_limit_error"), headers };
  expect(await failure(reply)).toMatchObject({ retryAfterMs: 2000 });
});

it("the Anthropic adapter allows a retry on another route after a 200 that contains no message", async () => {
  expect(await failure(jsonReply('{"ok":true}'))).toEqual({ kind: "retry", reason: "bad_answer" });
  expect(await failure(jsonReply('{"type":"mess'))).toEqual({ kind: "retry", reason: "bad_json" });
  const page = { headers: { "content-type": "text/html" }, body: "<html>" };
  expect(await failure(page, true)).toEqual({ kind: "retry", reason: "content_type" });
});

it("the Anthropic adapter sends no embeddings request", async () => {
  const { answer, requests } = await answerTo(PROVIDER, { kind: "embeddings" }, streamReply(START));
  expect(answer).toMatchObject({ kind: "failure", failure: { kind: "disabled" } });
  expect(requests).toEqual([]);
});

function at(seconds: number): string {
  return new Date(Date.parse(DATE) + seconds * 1000).toISOString().replace(".000", "");
}
