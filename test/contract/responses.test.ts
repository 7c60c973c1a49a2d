import { beforeAll, describe, expect, it } from "vitest";
import { eventsOf, followResponse } from "../protocols/responses/follow.ts";
import type { Account as Folded } from "../protocols/responses/follow.ts";
import { response as responseSchema } from "../protocols/responses/sdk-schemas.ts";
import type { AnyResponse } from "../protocols/responses/sdk-schemas.ts";
import { balanceOf, chat, errorOf, openAccount, send } from "./client.ts";
import type { Sending } from "./client.ts";
import { createKey } from "./key-client.ts";
import {
  mockUpstream,
  upstreamCompletion,
  upstreamError,
  upstreamStream,
  USAGE,
} from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

type Options = Pick<Sending, "headers" | "bindings"> & { readonly with?: string };

/** Returns a response of `sandbox/echo`, unless the fields name another model. */
function createResponse(
  fields: Record<string, unknown> = {},
  options: Options = {},
): Promise<Response> {
  const { with: other = key, ...more } = options;
  const body = { model: "sandbox/echo", input: "Hello there", ...fields };
  return send("/v1/responses", { key: other, body, ...more });
}

async function answered(response: Response): Promise<AnyResponse> {
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  return responseSchema.parse(JSON.parse(text));
}

async function streamed(response: Response): Promise<Folded> {
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  return followResponse(eventsOf(await response.text()));
}

const textIn = ({ output }: AnyResponse): string =>
  output
    .flatMap((item) => (item.type === "message" ? item.content : []))
    .map((part) => ("text" in part ? part.text : part.refusal))
    .join("");

/** Removes the parts that differ between two responses to one request. */
const comparable = ({ output, ...rest }: AnyResponse) => ({
  ...rest,
  id: "",
  created_at: 0,
  completed_at: 0,
  output: output.map((item) => ({
    ...item,
    id: "",
  })),
});

const chunk = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});

const toolCallChunk = (index: number, args: string, more: object = {}) =>
  chunk({ tool_calls: [{ index, ...more, function: { name: undefined, arguments: args } }] });

describe("POST /v1/responses", () => {
  it("returns JSON with the gateway's ID, model name and cost", async () => {
    const before = await balanceOf(key);
    const response = await createResponse({ model: "smart", metadata: { a: "b" }, store: true });
    const id = response.headers.get("x-request-id")?.slice("req_".length);
    const cost = Number(response.headers.get("x-cost-micro"));
    const body = await answered(response);
    expect(body).toMatchObject({
      id: `resp_${id}`,
      model: "sandbox/echo",
      status: "completed",
      metadata: { a: "b" },
      store: false,
      usage: { cost_micro: cost },
    });
    expect(body.completed_at).toBeGreaterThanOrEqual(body.created_at);
    expect(textIn(body)).toBe("Hello there");
    expect(await balanceOf(key)).toBe(before - cost);
    const generation = await send(`/v1/generations/${body.id}`, { key });
    expect(generation.status).toBe(200);
  });

  it("streams the same content as the JSON response", async () => {
    const fields = { instructions: "Be kind.", input: [{ role: "user", content: "Hello there" }] };
    const { response: whole } = await streamed(await createResponse({ ...fields, stream: true }));
    const json = await answered(await createResponse(fields));
    expect(comparable(whole)).toEqual(comparable(json));
  });

  it("counts usage for the end user in the body or the header, and rejects two different end users", async () => {
    const external = `u-${crypto.randomUUID()}`;
    await answered(await createResponse({ user: external }));
    const spent = await send(`/v1/users/${external}`, { key });
    expect(spent.status).toBe(200);
  });

  it("limits the output to max_output_tokens, and returns the status 'incomplete' at the limit", async () => {
    const long = "word ".repeat(100);
    const { response: whole, done } = await streamed(
      await createResponse({ input: long, max_output_tokens: 16, stream: true }),
    );
    expect(whole).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      max_output_tokens: 16,
    });
    expect(done[0]?.status).toBe("incomplete");
  });

  it("returns the status 'failed' with the error for insufficient credits if the balance limited the output", async () => {
    const { key: poor } = await openAccount({ credits: 700 });
    const response = await createResponse({ input: "word ".repeat(100) }, { with: poor });
    if (response.status === 402) throw new Error("the balance pays for nothing: take another");
    expect(response.headers.has("x-granted-max-tokens")).toBe(true);
    expect(await answered(response)).toMatchObject({
      status: "failed",
      error: { code: "insufficient_quota" },
    });
  });

  it("returns the status incomplete if only the key's token limit lowered the output cap", async () => {
    const { key: limited } = await createKey(key, { scope: "regional", tpm_limit: 900 });
    const response = await createResponse({ input: "word ".repeat(400) }, { with: limited });
    expect(response.headers.has("x-granted-max-tokens")).toBe(false);
    expect(await answered(response)).toMatchObject({
      status: "incomplete",
      error: null,
      incomplete_details: { reason: "max_output_tokens" },
    });
  });

  it("returns 404 or 400 for requests that refer to stored responses", async () => {
    for (const [method, path] of [
      ["GET", "/resp_x"],
      ["DELETE", "/resp_x"],
      ["POST", "/resp_x/cancel"],
      ["GET", "/resp_x/input_items"],
      ["POST", "/compact"],
      ["POST", "/input_tokens"],
    ] as const) {
      const body = method === "POST" ? { body: {} } : {};
      await errorOf(await send(`/v1/responses${path}`, { key, method, ...body }), 404);
    }
    const refused = await errorOf(await createResponse({ previous_response_id: "resp_1" }), 400);
    expect(refused.param).toBe("previous_response_id");
    await errorOf(await send("/v1/responses", { key }), 405);
  });

  it("lists dropped fields in x-dropped", async () => {
    const tools = [{ type: "web_search" }, { type: "function", name: "f" }];
    const response = await createResponse({ tools });
    expect(response.headers.get("x-dropped")).toBe("tools.web_search");
    expect((await answered(response)).tools).toEqual([
      tools[0],
      { ...tools[1], description: null, parameters: null, strict: null },
    ]);
  });
});

describe("POST /v1/responses with an error", () => {
  it("returns OpenAI's error format for 401, 402, 404 and 429", async () => {
    await errorOf(await createResponse({}, { with: "svc_sk_eu_live_nobody" }), 401);
    const { key: poor } = await openAccount({ credits: 0 });
    const unpaid = await errorOf(await createResponse({}, { with: poor }), 402);
    expect(unpaid.type).toBe("insufficient_balance");
    expect(unpaid.message).toMatch(/^Insufficient credits/); // agents stop only at this text
    expect((await errorOf(await createResponse({ model: "no/such" }), 404)).param).toBe("model");
    const { key: slow } = await openAccount({ rpmLimit: 1 });
    await answered(await createResponse({}, { with: slow }));
    const limited = await errorOf(await createResponse({}, { with: slow }), 429);
    expect(limited.retry_after).toBeGreaterThan(0);
  });

  it("returns 503 as JSON for a failure before the first byte, without a charge", async () => {
    const { bindings } = mockUpstream(() => upstreamError(503, { message: "busy" }));
    const before = await balanceOf(key);
    for (const stream of [false, true]) {
      const failed = await errorOf(
        await createResponse({ model: "mock/chat", stream }, { bindings }),
        503,
      );
      expect(failed.code).toBe("upstream_overloaded");
    }
    expect(await balanceOf(key)).toBe(before);
  });

  it("returns a provider's 400 with the name of the client's field as param", async () => {
    const error = { message: "Bad schema.", param: "response_format", code: null };
    const { bindings } = mockUpstream(() => upstreamError(400, error));
    const failed = await errorOf(await createResponse({ model: "mock/chat" }, { bindings }), 400);
    expect(failed.param).toBe("text.format");
  });

  it("returns 409 idempotency_replay for a repeated Idempotency-Key", async () => {
    const headers = { "idempotency-key": crypto.randomUUID() };
    const { id } = await answered(await createResponse({}, { headers }));
    const replay = await errorOf(await createResponse({}, { headers }), 409);
    expect(replay).toMatchObject({ code: "idempotency_replay" });
    expect(replay.generation_id?.slice("req_".length)).toBe(id.slice("resp_".length));
  });
});

describe("a failed stream of POST /v1/responses", () => {
  it.each(["sandbox/cut", "sandbox/error-mid"])(
    "ends with error, response.failed and [DONE]: %s",
    async (model) => {
      const response = await createResponse({
        model,
        stream: true,
        input: "one two three four five six seven",
      });
      const { response: whole } = await streamed(response);
      expect(whole).toMatchObject({ status: "failed", error: { code: "server_error" } });
      expect(textIn(whole)).toMatch(/^one/);
    },
  );
});

const FUNCTIONS = [
  { type: "function", name: "weather", parameters: { type: "object" }, strict: true },
  {
    type: "namespace",
    name: "files",
    description: "Files",
    tools: [{ type: "custom", name: "patch", description: "Patch" }],
  },
];

function calling(
  calls: readonly { readonly name: string; readonly arguments: string }[],
): Response {
  const tool_calls = calls.map((called, index) => ({
    id: `call_${index}`,
    type: "function",
    function: called,
  }));
  const message = { role: "assistant", content: null, tool_calls };
  return Response.json({
    choices: [{ index: 0, message, finish_reason: "tool_calls" }],
    usage: USAGE,
  });
}

describe("a tool of POST /v1/responses", () => {
  it("can be called in parallel with others, and the results continue the conversation at both endpoints", async () => {
    const patch = { name: "files__patch", arguments: JSON.stringify({ input: 'a "b"\n😀' }) };
    const replies = [
      calling([{ name: "weather", arguments: '{"city":"Bonn"}' }, patch]),
      upstreamError(503, { message: "busy" }),
      upstreamCompletion(),
      upstreamCompletion(),
    ];
    const { calls, bindings } = mockUpstream(() => replies.shift() ?? upstreamCompletion());
    const model = "mock/chat";
    const start = [{ role: "user", content: "Go" }];
    const first = await answered(
      await createResponse({ model, input: start, tools: FUNCTIONS }, { bindings }),
    );
    expect(first.output).toMatchObject([
      { type: "function_call", call_id: "call_0", name: "weather", arguments: '{"city":"Bonn"}' },
      { type: "custom_tool_call", name: "patch", namespace: "files", input: 'a "b"\n😀' },
    ]);
    const input = [
      ...start,
      ...first.output,
      { type: "function_call_output", call_id: "call_0", output: "sunny" },
      { type: "custom_tool_call_output", call_id: "call_1", output: "patched" },
    ];
    await errorOf(await createResponse({ model, input, tools: FUNCTIONS }, { bindings }), 503);
    await answered(await createResponse({ model, input, tools: FUNCTIONS }, { bindings }));
    const messages = [
      ...start,
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "call_0",
            type: "function",
            function: { name: "weather", arguments: '{"city":"Bonn"}' },
          },
          { id: "call_1", type: "function", function: patch },
        ],
      },
      { role: "tool", tool_call_id: "call_0", content: "sunny" },
      { role: "tool", tool_call_id: "call_1", content: "patched" },
    ];
    expect(calls.at(-1)?.body["messages"]).toEqual(messages);
    await (await chat(key, { model, messages }, { bindings })).text();
    expect(calls.at(-1)?.body["messages"]).toEqual(messages);
  });

  it("appears in the stream before the model has written the tool's arguments", async () => {
    const { bindings } = mockUpstream(() =>
      upstreamStream([
        chunk({ role: "assistant", content: "Look" }),
        chunk({
          tool_calls: [
            { index: 0, id: "c0", type: "function", function: { name: "weather", arguments: "" } },
          ],
        }),
        toolCallChunk(0, '{"city":'),
        toolCallChunk(0, '"Bonn"}'),
        chunk({
          tool_calls: [
            {
              index: 1,
              id: "c1",
              type: "function",
              function: { name: "files__patch", arguments: "" },
            },
          ],
        }),
        toolCallChunk(1, '{"input":"a\\n'),
        toolCallChunk(1, 'b"}'),
        chunk({}, "tool_calls"),
        { choices: [], usage: USAGE },
      ]),
    );
    const response = await createResponse(
      { model: "mock/chat", stream: true, tools: FUNCTIONS },
      { bindings },
    );
    const { response: whole } = await streamed(response);
    expect(whole.status).toBe("completed");
    expect(whole.output).toMatchObject([
      { type: "message", content: [{ text: "Look" }] },
      { type: "function_call", call_id: "c0", arguments: '{"city":"Bonn"}' },
      { type: "custom_tool_call", call_id: "c1", namespace: "files", input: "a\nb" },
    ]);
  });
});
