import { describe, expect, it } from "vitest";
import { errorResponseOf } from "../../../src/shared/http/failure-mapping.ts";
import { parseThoughts } from "../../../src/models/core/stored-thoughts.ts";
import { CALLER_CASES } from "../../http/failure-cases.ts";
import type { Cases } from "../../http/failure-cases.ts";
import { LIMIT_CASES } from "../../http/limit-cases.ts";
import { eventsOf, eventsSoFar, followResponse } from "./follow.ts";
import type { AnyResponse } from "./sdk-schemas.ts";
import {
  requestOf,
  startStream,
  BODY,
  call,
  completion,
  json,
  RECEIPT,
  streamed,
  textOf,
  types,
} from "./stream-kit.ts";

// TypeScript requires a case for every kind of failure.
const EVERY_FAILURE: Cases = { ...CALLER_CASES, ...LIMIT_CASES };
const FAILURES = Object.values(EVERY_FAILURE).flatMap((rows) => rows.map(([failure]) => failure));

describe("a Responses stream", () => {
  it("follows the documented order of events for reasoning, a text and two calls", () => {
    const text = textOf(
      [
        { reasoning_content: "Hm" },
        { reasoning_details: [{ type: "x.signed", signature: "s" }] },
        "Look",
        call(0, "plain", '{"a":1}'),
        call(1, "files__read", ""),
      ],
      { ...RECEIPT, finishReason: "tool_calls" },
      BODY,
    );
    const order = `created in_progress output_item.added reasoning_summary_part.added
      reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done
      output_item.done output_item.added content_part.added output_text.delta
      output_text.done content_part.done output_item.done output_item.added
      function_call_arguments.delta function_call_arguments.done output_item.done
      output_item.added function_call_arguments.delta function_call_arguments.done
      output_item.done completed`;
    expect(types(text)).toEqual(order.split(/\s+/));
    const { output } = followResponse(eventsOf(text)).response;
    expect(output[3]).toMatchObject({ name: "read", namespace: "files", arguments: "{}" });
  });

  it("contains a refusal that follows a text as a separate part", () => {
    const { response: whole } = streamed(["Well, ", { refusal: "I " }, { refusal: "won't" }]);
    expect(whole.status).toBe("completed");
    expect(whole.output[0]).toMatchObject({
      content: [{ text: "Well, " }, { type: "refusal", refusal: "I won't" }],
    });
  });

  it("contains a message even if there is no output", () => {
    expect(streamed([{ role: "assistant", content: "" }]).response.output).toMatchObject([
      { type: "message", content: [{ type: "output_text", text: "" }] },
    ]);
  });
});

describe("the output of a truncated Responses stream", () => {
  const cut = { ...RECEIPT, finishReason: "length" };

  it("gets the status 'incomplete', and the text part is closed", () => {
    const { response: whole } = streamed(["Hel"], cut);
    expect(whole).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      completed_at: null,
      output: [{ status: "incomplete", content: [{ text: "Hel" }] }],
    });
    expect(whole.usage).toMatchObject({ total_tokens: 14, cost_micro: 42 });
  });

  it("contains a partial tool call as in_progress and a complete tool call as completed", () => {
    const { response: whole, done } = streamed(
      [call(0, "plain", '{"a":1}'), call(1, "plain", '{"b')],
      cut,
    );
    expect(done.map((item) => item?.status ?? null)).toEqual(["completed", null]);
    expect(whole.output[1]).toMatchObject({ status: "incomplete", arguments: '{"b' });
  });

  it("reports a content filter that ended the stream", () => {
    const filtered = { ...RECEIPT, finishReason: "content_filter" };
    expect(streamed(["x"], filtered).response.incomplete_details?.reason).toBe("content_filter");
  });

  it("gets the status 'failed' with insufficient_quota if the balance lowered the output cap", () => {
    const poor = { ...cut, capLoweredByMoney: true };
    expect(streamed(["x"], poor).response).toMatchObject({
      status: "failed",
      error: {
        code: "insufficient_quota",
        message: expect.stringMatching(/^Insufficient credits/),
      },
    });
    expect(json(completion({ content: "x" }), poor).error?.code).toBe("insufficient_quota");
  });
});

describe("a failure within a Responses stream", () => {
  it("results in an error event, response.failed with the partial output, and [DONE]", () => {
    const { writer, text } = startStream(["Hel", call(0, "plain", '{"a')]);
    const all = text + writer.fail({ kind: "upstream_error" }, RECEIPT);
    const list = eventsOf(all);
    expect(list.slice(-2).map(({ type }) => type)).toEqual(["error", "response.failed"]);
    expect(list.at(-2)).toMatchObject({ code: "server_error", error: { code: "server_error" } });
    expect(followResponse(list).response).toMatchObject({
      error: { code: "server_error", type: "upstream_error" },
      output: [{ type: "message", status: "completed" }, { status: "in_progress" }],
    });
  });

  it.each([
    [{ kind: "internal" }, "server_error"],
    [{ kind: "upstream_overloaded", retryAfterSeconds: 3 }, "server_error"],
    [{ kind: "storage_unavailable" }, "server_error"],
    [
      { kind: "balance_too_low", balanceMicro: 0, requiredMicro: 1, onlyHolds: false },
      "insufficient_quota",
    ],
    [
      { kind: "balance_too_low", balanceMicro: 0, requiredMicro: 1, onlyHolds: true },
      "rate_limit_exceeded",
    ],
    [{ kind: "payment_reversed", owedMicro: 5 }, "insufficient_quota"],
    [
      {
        kind: "key_budget_exceeded",
        period: "day",
        budgetMicro: 5,
        leftMicro: 0,
        resetsAt: 1_790_000_000_000,
        requiredMicro: 1,
        heldMicro: 0,
        onlyHolds: false,
      },
      "insufficient_quota",
    ],
    [
      { kind: "tokens_limited", limit: 9, remaining: 1, required: 5, retryAfterMs: 4000 },
      "rate_limit_exceeded",
    ],
    [{ kind: "concurrency_limited", scope: "key", limit: 5 }, "rate_limit_exceeded"],
    [{ kind: "too_many_end_users" }, "invalid_prompt"],
    [{ kind: "tokens_over_limit", limit: 9, prompt: 1, required: 20 }, "invalid_prompt"],
    [{ kind: "model_not_allowed", model: "a/b" }, "invalid_prompt"],
    [{ kind: "invalid_request", message: "No.", param: null }, "invalid_prompt"],
    [
      { kind: "invalid_request", message: "No.", param: null, code: "context_length_exceeded" },
      "context_length_exceeded",
    ],
  ] as const)("gets the code that coding agents handle: %o", (failure, code) => {
    const { writer, text } = startStream([]);
    const { error } = followResponse(eventsOf(text + writer.fail(failure as never, null))).response;
    expect(error?.code).toBe(code);
  });

  it.each(FAILURES)("gets no code that would stop a coding agent from retrying: %o", (failure) => {
    const { writer, text } = startStream([]);
    const { error } = followResponse(eventsOf(text + writer.fail(failure, null))).response;
    for (const code of [
      error?.code,
      errorResponseOf(failure).code,
      errorResponseOf(failure).type,
    ]) {
      expect(["server_is_overloaded", "slow_down"]).not.toContain(code);
    }
  });

  it.each([
    ["a rate limit", { kind: "rate_limited", scope: "key", limit: 60, retryAfterMs: 11_200 }, "12"],
    [
      "an automatic top-up in progress",
      {
        kind: "balance_too_low",
        balanceMicro: 0,
        requiredMicro: 1,
        onlyHolds: false,
        purchaseId: "pur_1",
      },
      "5",
    ],
  ] as const)("contains, for %s, a wait that Codex can parse", (_, failure, seconds) => {
    const { writer, text } = startStream([]);
    const { error } = followResponse(eventsOf(text + writer.fail(failure as never, null))).response;
    expect(error).toMatchObject({
      code: "rate_limit_exceeded",
      message: expect.stringContaining(`Please try again in ${seconds}s.`),
    });
  });
});

it("a Responses stream without output is kept alive by comments and occasional events", () => {
  const { writer, text } = startStream(["a"]);
  let silent = "";
  for (let quarter = 0; quarter < 20; quarter++) silent += writer.ping;
  expect(silent.match(/^: /gm)).toHaveLength(16);
  const list = eventsOf(text + silent + writer.text(0, '"b"') + writer.end(RECEIPT));
  expect(list.filter(({ type }) => type === "keepalive")).toHaveLength(4);
  expect(followResponse(list).response.output).toMatchObject([{ content: [{ text: "ab" }] }]);
});

it("a Responses stream is kept alive while the model reasons without visible output", () => {
  const { writer } = startStream([{ role: "assistant", content: "" }], {
    ...BODY,
    reasoning: null,
  });
  let silent = "";
  for (let quarter = 0; quarter < 20; quarter++) {
    silent += writer.chunk({
      choices: [{ index: 0, delta: { reasoning_content: "Hm" }, finish_reason: null }],
    });
    silent += writer.text(0, '""') + writer.ping;
  }
  expect(eventsSoFar(silent).map(({ type }) => type)).toEqual(Array(4).fill("keepalive"));
});

it("a Responses stream includes reasoning only on request", () => {
  const message = {
    content: "x",
    reasoning_content: "Hm",
    reasoning_details: [{ type: "x.signed", signature: "s" }],
  };
  const item = (body: object) => json(completion(message), RECEIPT, { ...BODY, ...body }).output[0];
  expect(item({ reasoning: null, include: null })?.type).toBe("message");
  expect(item({ reasoning: { summary: "auto" }, include: [] })).toMatchObject({
    summary: [{ text: "Hm" }],
    encrypted_content: null,
  });
  const kept = item({ reasoning: {} });
  if (kept?.type !== "reasoning") throw new Error("no reasoning");
  expect(kept.summary).toEqual([]);
  expect(parseThoughts(kept.encrypted_content ?? "")?.details).toEqual(message.reasoning_details);
});

it("a stored Responses stream contains reasoning and tool calls' extra content, which the client's stream omits", () => {
  const details = [{ type: "x.signed", signature: "s" }];
  const extra = { google: { thought_signature: "sig" } };
  const signed = { id: "c", function: { name: "plain", arguments: "{}" }, extra_content: extra };
  const message = { reasoning_details: details, tool_calls: [{ index: 0, ...signed }] };
  const { reply } = requestOf({ ...BODY, reasoning: null, include: null });
  if (reply.kind !== "json") throw new Error("not JSON");
  const kept = (keeps: boolean) =>
    reply.kept?.(completion(message), { ...RECEIPT, keeps })?.["response"] as AnyResponse;
  const [thought] = kept(true).output;
  if (thought?.type !== "reasoning") throw new Error("no reasoning");
  expect(parseThoughts(thought.encrypted_content ?? "")).toMatchObject({
    details,
    extras: { c: extra },
  });
  expect(kept(false).output.map(({ type }) => type)).toEqual(["function_call"]);
});

it("a Responses stream sends a tool call's extra content before the call, for use in the next request", () => {
  const extra = { google: { thought_signature: "sig" } };
  const signed = {
    index: 0,
    id: "c",
    function: { name: "plain", arguments: "{}" },
    extra_content: extra,
  };
  const { response: whole } = streamed(["Look", { tool_calls: [signed] }]);
  expect(whole.output.map(({ type }) => type)).toEqual(["message", "reasoning", "function_call"]);
  const [, kept] = whole.output;
  if (kept?.type !== "reasoning") throw new Error("no reasoning");
  expect(parseThoughts(kept.encrypted_content ?? "")?.extras).toEqual({ c: extra });
});
