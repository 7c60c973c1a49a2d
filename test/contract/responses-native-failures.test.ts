import { beforeAll, describe, expect, it, vi } from "vitest";
import {
  startEvents,
  callItem,
  ENCRYPTED,
  itemEvents,
  responseObject,
  RESPONSES_FAILED,
  scenario,
  streamReply,
  textItem,
} from "../fixtures/responses-replies.ts";
import { balanceOf, chat, errorOf, openAccount } from "./client.ts";
import { mockAnthropic } from "./messages-client.ts";
import {
  responseOf,
  postResponse,
  COST,
  HOST,
  mockOpenAi,
  replied,
  replyInPieces,
  SAID,
  SHOWN,
  streamedResponseOf,
} from "./responses-client.ts";
import { upstreamCompletion, upstreamError } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

/** Returns the items that a client sends back after OpenAI's response. */
async function fetchOutput(): Promise<object[]> {
  const { bindings } = mockOpenAi(() => replied(SAID.json));
  const { output } = await responseOf(await postResponse(key, SHOWN, { bindings }));
  vi.restoreAllMocks();
  return [...output, { type: "function_call_output", call_id: "call_1", output: "done" }];
}

describe("a later request with OpenAI's encrypted reasoning", () => {
  const theirs = {
    type: "reasoning",
    summary: [{ type: "summary_text", text: "Let me think." }],
    encrypted_content: ENCRYPTED,
  };

  it("sends the reasoning to OpenAI in decoded form, and to no other provider", async () => {
    const input = await fetchOutput();
    expect(JSON.stringify(input)).not.toContain(ENCRYPTED); // in the gateway's own envelope
    const { calls, bindings } = mockOpenAi(({ url }) =>
      url.startsWith(HOST) ? replied(SAID.json) : upstreamCompletion(),
    );
    await responseOf(await postResponse(key, { input }, { bindings }));
    expect(calls[0]?.body["input"]).toMatchObject([theirs, {}, {}, {}]);
    await responseOf(await postResponse(key, { model: "mock/other", input }, { bindings }));
    expect(JSON.stringify(calls[1]?.body)).not.toContain(ENCRYPTED);
  });

  it("omits the reasoning if the items that followed it are missing", async () => {
    const [thought] = await fetchOutput();
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const user = { role: "user", content: "And?" };
    await responseOf(await postResponse(key, { input: [user, thought, user] }, { bindings }));
    expect(JSON.stringify(calls[0]?.body)).not.toContain(ENCRYPTED);
  });

  it("retries once without the reasoning if OpenAI rejects the reasoning", async () => {
    const input = await fetchOutput();
    const refusal = {
      code: "invalid_encrypted_content",
      message: "Not yours.",
      type: "invalid_request_error",
    };
    const { calls, bindings } = mockOpenAi(({ body }) =>
      JSON.stringify(body).includes(ENCRYPTED) ? upstreamError(400, refusal) : replied(SAID.json),
    );
    const response = await postResponse(key, { input }, { bindings });
    expect(response.headers.get("x-attempts")).toBe("1");
    await responseOf(response);
    const [first, second] = calls.map(({ body }) => body["input"] as object[]);
    expect(second).toEqual(first?.slice(1));
    expect(calls).toHaveLength(2);
  });
});

describe("POST /v1/responses when OpenAI fails", () => {
  it("calls the next route with a converted request if the failure comes before the first byte", async () => {
    for (const reply of [replied(RESPONSES_FAILED.errorFirst), upstreamError(503, {})]) {
      const { calls, bindings } = mockOpenAi(({ url }) =>
        url.startsWith(HOST) ? reply.clone() : upstreamCompletion(),
      );
      const tools = [{ type: "web_search" }];
      const response = await postResponse(
        key,
        { model: "mock/both", tools, presence_penalty: 1 },
        { bindings },
      );
      expect(response.headers.get("x-route")).toBe("other:up-chat");
      expect(response.headers.get("x-dropped")).toBe("tools.web_search");
      expect((await responseOf(response)).output).toMatchObject([{ content: [{ text: "hi" }] }]);
      expect(calls.length).toBeGreaterThan(1);
      vi.restoreAllMocks();
    }
  });

  it.each(["errorMid", "cut"] as const)(
    "ends a started stream with error, response.failed and [DONE]: %s",
    async (name) => {
      const { bindings } = mockOpenAi(() => replyInPieces(RESPONSES_FAILED[name]));
      const before = await balanceOf(key);
      const { response: whole } = await streamedResponseOf(
        await postResponse(key, { stream: true }, { bindings }),
      );
      expect(whole).toMatchObject({
        status: "failed",
        error: { code: "server_error" },
        output: [{ content: [{ text: "Hello" }] }],
      });
      expect(await balanceOf(key)).toBe(before);
    },
  );

  it("charges the client for a failure that the request itself caused", async () => {
    const { bindings } = mockOpenAi(() => replied(RESPONSES_FAILED.provoked.stream));
    const before = await balanceOf(key);
    const { response: whole } = await streamedResponseOf(
      await postResponse(key, { stream: true }, { bindings }),
    );
    expect(whole).toMatchObject({
      status: "failed",
      error: {
        code: "invalid_prompt",
        type: "invalid_request_error",
        message: expect.stringMatching(/^Invalid prompt/),
      },
      usage: { cost_micro: COST },
    });
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("returns 400 with the cost for a failure before any output, but returns an error stream to Codex", async () => {
    const codex = { originator: "codex_exec", accept: "text/event-stream" };
    for (const [headers, status] of [
      [{}, 400],
      [codex, 200],
    ] as const) {
      const { bindings } = mockOpenAi(() => replied(RESPONSES_FAILED.provoked.json));
      const response = await postResponse(key, {}, { bindings, headers });
      expect(response.status).toBe(status);
      const headerValues = ["x-should-retry", "x-cost-micro"].map((name) =>
        response.headers.get(name),
      );
      expect(headerValues).toEqual(["false", expect.stringMatching(/^[1-9]\d*$/)]);
      expect(await response.text()).toContain('"code":"invalid_prompt"');
      vi.restoreAllMocks();
    }
  });

  const LONG = "a ".repeat(2_500_000);

  it("accepts long events that only repeat known content such as instructions", async () => {
    const logprobs = [{ token: LONG, logprob: 0, bytes: [], top_logprobs: [] }];
    const item = textItem(["Hel", "lo"]);
    const [added, part, ...rest] = itemEvents(item, 0);
    const [created, ...laterStartEvents] = startEvents() as { response: object }[];
    const longCreated = { ...created, response: { ...created?.response, instructions: LONG } };
    const whole = responseObject([
      { ...item.whole, content: [{ type: "output_text", text: "Hello", logprobs }] },
    ]);
    const end = { type: "response.completed", response: { ...whole, instructions: LONG } };
    const events = [longCreated, ...laterStartEvents, added, part, ...rest, end].filter(
      (event) => event !== undefined,
    );
    const { bindings } = mockOpenAi(() => replied(streamReply(events)));
    const before = await balanceOf(key);
    const response = await postResponse(key, { stream: true }, { bindings });
    const { response: ended } = await streamedResponseOf(response);
    expect(ended).toMatchObject({
      status: "completed",
      output: [{ content: [{ text: "Hello" }] }],
    });
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("ends the response at an oversized event, and charges the output up to that event", async () => {
    const first = [...startEvents(), ...itemEvents(textItem(["Hel", "lo"]), 0).slice(0, 4)];
    const long = { type: "response.output_text.delta", output_index: 0, delta: LONG };
    const { bindings } = mockOpenAi(() => replied(streamReply([...first, long])));
    const before = await balanceOf(key);
    const response = await postResponse(key, { stream: true }, { bindings });
    const { response: ended } = await streamedResponseOf(response);
    expect(ended).toMatchObject({ status: "failed", error: { code: "invalid_prompt" } });
    const usage = ended.usage as unknown as { cost_micro: number };
    expect(usage.cost_micro).toBeGreaterThan(0);
    expect(before - (await balanceOf(key))).toBe(usage.cost_micro);
  });

  it("rejects a request for too many log probabilities without calling OpenAI", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const include = ["message.output_text.logprobs"];
    const fields = { include, top_logprobs: 20, max_output_tokens: 4000, stream: true };
    const refused = await errorOf(await postResponse(key, fields, { bindings }), 400);
    expect(refused.param).toBe("include");
    expect(refused.message).toMatch(/is too large. Request at most \d+ tokens/);
    expect(calls).toEqual([]);
  });

  it("charges a truncated response, and returns the status 'incomplete' with a partial tool call", async () => {
    const partialCall = callItem("call_1", "f", ['{"a":']);
    const truncatedItem = { ...partialCall.whole, status: "incomplete" };
    const end = { status: "incomplete", reason: "max_output_tokens" } as const;
    const events = [
      ...startEvents(),
      ...itemEvents(partialCall, 0).slice(0, 2),
      { type: "response.incomplete", response: responseObject([truncatedItem], end) },
    ];
    const { bindings } = mockOpenAi(() => replied(streamReply(events)));
    const before = await balanceOf(key);
    const { response: whole, done } = await streamedResponseOf(
      await postResponse(key, { stream: true }, { bindings }),
    );
    expect(done).toEqual([null]);
    expect(whole).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ status: "incomplete", arguments: '{"a":' }],
      usage: { total_tokens: 15 },
    });
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("returns the error insufficient_quota if the balance limited the output", async () => {
    const { key: poor } = await openAccount({ credits: 700 });
    const end = { status: "incomplete", reason: "max_output_tokens" } as const;
    const reply = scenario([textItem(["Hel"], "incomplete")], end);
    const { bindings } = mockOpenAi(() => replied(reply.stream));
    const response = await postResponse(poor, { stream: true }, { bindings });
    const { response: whole } = await streamedResponseOf(response);
    expect(response.headers.has("x-granted-max-tokens")).toBe(true);
    expect(whole).toMatchObject({ status: "failed", error: { code: "insufficient_quota" } });
  });

  it("reports an invalid image with the error that makes Codex remove the image from the history", async () => {
    const param = "input[0].content[0].image_url";
    const error = {
      message: "Bad.",
      param,
      code: "invalid_image_url",
      type: "invalid_request_error",
    };
    const { bindings } = mockOpenAi(() => upstreamError(400, error));
    const refused = await errorOf(await postResponse(key, {}, { bindings }), 400);
    expect(refused).toMatchObject({ param, code: "invalid_value" });
  });

  it.each([
    ["detected by the gateway", "image/tiff", "", 1],
    [
      "named by Claude",
      "image/png",
      "messages.0.content.1.image.source.base64.data: Image does not match the provided media type image/png",
      1,
    ],
    ["the last image if Claude names none", "image/png", "Could not process image", 2],
  ])("reports an invalid image on a route to Claude: %s", async (_, type, message, at) => {
    const { bindings } = mockAnthropic(() => upstreamError(400, { message }));
    const urls = [`data:${type};base64,iVBORw0KGgo=`, "data:image/png;base64,iVBORw0KGgo="];
    const images = urls.map((image_url) => ({ type: "input_image", image_url }));
    const content = [{ type: "input_text", text: "See:" }, ...images];
    const input = [
      { type: "additional_tools", tools: [] },
      { role: "user", content },
    ];
    const refused = await errorOf(
      await postResponse(key, { model: "mock/claude", input }, { bindings }),
      400,
    );
    expect(refused).toMatchObject({
      code: "invalid_value",
      param: `input[1].content[${at}].image_url`,
    });
    const parts = urls.map((url) => ({ type: "image_url", image_url: { url } }));
    const messages = [{ role: "user", content: [{ type: "text", text: "See:" }, ...parts] }];
    const response = await chat(key, { model: "mock/claude", messages }, { bindings });
    expect(await errorOf(response, 400)).toMatchObject({
      code: "invalid_value",
      param: `messages[0].content[${at}].image_url`,
    });
  });

  it("applies the field 'truncation' only to routes to OpenAI", async () => {
    const { calls, bindings } = mockOpenAi(({ url }) =>
      url.startsWith(HOST) ? upstreamError(503, {}) : upstreamCompletion(),
    );
    const fields = { truncation: "auto" };
    await errorOf(await postResponse(key, { model: "mock/both", ...fields }, { bindings }), 503);
    expect(calls.every(({ url }) => url.startsWith(HOST))).toBe(true);
    const refused = await errorOf(
      await postResponse(key, { model: "mock/other", ...fields }, { bindings }),
      400,
    );
    expect(refused.param).toBe("truncation");
  });

  it("rejects a request without calling OpenAI if fields that the response repeats exceed the size limit", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const numbers: unknown = Array.from({ length: 60_000 }, () => 1);
    const nestedEnum = Array.from({ length: 50 }).reduce((inner) => [inner], numbers);
    const tool = { type: "function", name: "f", strict: false, parameters: { enum: nestedEnum } };
    const before = await balanceOf(key);
    const { param } = await errorOf(await postResponse(key, { tools: [tool] }, { bindings }), 400);
    expect([param, calls.length, await balanceOf(key)]).toEqual(["tools", 0, before]);
  });
});
