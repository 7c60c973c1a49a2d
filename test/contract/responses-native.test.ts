import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { eventsOf, follow } from "../inference/doors/responses/follow.ts";
import type { Account as Folded } from "../inference/doors/responses/follow.ts";
import { response as responseSchema } from "../inference/doors/responses/sdk-schemas.ts";
import type { AnyResponse } from "../inference/doors/responses/sdk-schemas.ts";
import {
  begin,
  call,
  ENCRYPTED,
  HELLO,
  itemEvents,
  reasoning,
  response,
  RESPONSES_FAILED,
  scenario,
  stream,
  text,
  usage,
} from "../fixtures/responses-wire.ts";
import { CANARY_TEXT } from "../fixtures/wire-scenario.ts";
import type { WireReply } from "../fixtures/wire-scenario.ts";
import { balanceOf, errorOf, openAccount, send } from "./client.ts";
import type { Sending } from "./client.ts";
import { mockUpstream, upstreamBindings, upstreamCompletion, upstreamError } from "./upstream.ts";
import type { UpstreamCall } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});
afterEach(() => {
  vi.restoreAllMocks();
});

const HOST = "https://responses.upstream.test/v1";
const entry = (id: string, base_url: string, profile: string) => ({
  id,
  base_url,
  profile,
  secret: "MOCK_API_KEY",
  regions: ["eu"],
});
const model = (id: string, ...routes: object[]) => ({
  id: `mock/${id}`,
  kind: "chat",
  context: 128_000,
  max_output: 4096,
  abilities: ["tools", "vision", "reasoning"],
  price: { input: 1_000_000, cached: 500_000, output: 2_000_000 },
  routes,
});
const OWN = { provider: "own", upstream_id: "gpt-6-sol" };
const OLD = { provider: "own", upstream_id: "gpt-4.1" };
const OTHER = { provider: "other", upstream_id: "up-chat" };

/** OpenAI's own host, and one that speaks chat alone. */
function mockOpenAi(answer: (call: UpstreamCall) => Response) {
  const { calls } = mockUpstream(answer);
  const bindings = upstreamBindings({
    PROVIDERS: JSON.stringify([
      entry("own", HOST, "openai"),
      entry("other", "https://chat.upstream.test/v1", "generic"),
    ]),
    MODELS: JSON.stringify([
      model("own", OWN),
      model("old", OLD),
      model("both", OWN, OTHER),
      model("other", OTHER),
    ]),
  });
  return { calls, bindings };
}

const replied = ({ status = 200, headers, body }: WireReply): Response =>
  new Response(body as string, { status, ...(headers !== undefined && { headers }) });

/** The same, an event at a time, each when the one before was read. */
function replyInPieces({ headers, body }: WireReply): Response {
  const pieces = String(body).split(/(?<=\n\n)/);
  const source = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else controller.enqueue(new TextEncoder().encode(piece));
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(source, { ...(headers !== undefined && { headers }) });
}

type Options = Pick<Sending, "headers" | "bindings"> & { readonly with?: string };

function ask(fields: Record<string, unknown>, options: Options): Promise<Response> {
  const { with: other = key, ...more } = options;
  const body = { model: "mock/own", input: "Hello there", ...fields };
  return send("/v1/responses", { key: other, body, ...more });
}

async function answered(answer: Response): Promise<AnyResponse> {
  const said = await answer.text();
  expect([answer.status, said]).toEqual([200, expect.any(String)]);
  expect(said).not.toContain(CANARY_TEXT);
  return responseSchema.parse(JSON.parse(said));
}

async function streamed(answer: Response): Promise<Folded> {
  expect(answer.status).toBe(200);
  const said = await answer.text();
  expect(said).not.toContain("obfuscation");
  expect(said).not.toContain("68ab4d9"); // their ids
  return follow(eventsOf(said));
}

/** 8 input at 1, 4 cached at a half, 3 of output at 2 micros a token. */
const COST = 8 + 2 + 6;
const SAID = scenario([reasoning(["Let me ", "think."]), text(HELLO), call("call_1", "f", ["{}"])]);
const INCLUDE = ["reasoning.encrypted_content"];
const SHOWN = { reasoning: { summary: "auto" }, include: INCLUDE };

describe("POST /v1/responses where OpenAI's own host serves", () => {
  it("sends what is named, as the client wrote it, and ours beside it", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const picture = { type: "input_image", image_url: "https://x.test/a.png", detail: "original" };
    const fields = {
      instructions: "Be brief.",
      input: [
        { role: "developer", content: "D" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "Go" }, picture] },
        { type: "message", role: "assistant", content: "Well", phase: "commentary", id: "msg_9" },
        {
          type: "function_call",
          id: "fc_9",
          call_id: "c1",
          name: "read",
          arguments: "{}",
          namespace: "files",
        },
        { type: "function_call_output", call_id: "c1", output: [picture] },
        { type: "web_search_call", id: "ws_1", status: "completed" },
        { type: "additional_tools", role: "developer", tools: [{ type: "custom", name: "late" }] },
      ],
      tools: [
        {
          type: "function",
          name: "f",
          parameters: { type: "object" },
          strict: true,
          defer_loading: true,
        },
        { type: "custom", name: "patch", format: { type: "text" } },
        { type: "namespace", name: "files", tools: [{ type: "function", name: "read" }] },
        { type: "web_search" },
      ],
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "custom", name: "patch" }],
      },
      parallel_tool_calls: false,
      text: { format: { type: "json_object" }, verbosity: "low" },
      reasoning: { effort: "minimal", summary: "auto", context: "current_turn" },
      temperature: 0.5,
      top_p: 0.9,
      presence_penalty: 1,
      max_output_tokens: 300,
      max_tool_calls: 3,
      truncation: "auto",
      store: true,
      metadata: { a: "b" },
      user: "ann",
      client_metadata: { x: "y" },
      unknown_field: 1,
      service_tier: "auto",
      safety_identifier: "client's own",
      prompt_cache_key: "slot",
    };
    const answer = await ask(fields, { bindings });
    const said = await answered(answer);
    expect(said).toMatchObject({
      metadata: { a: "b" },
      user: "ann",
      prompt_cache_key: "slot",
      tools: [{}, {}, { type: "namespace" }, { type: "web_search" }],
    });
    expect(answer.headers.get("x-dropped")).toBe(
      "max_tool_calls, tools.web_search, presence_penalty, input.web_search_call",
    );
    const [sent] = calls;
    expect(sent?.url).toBe(`${HOST}/responses`);
    const { safety_identifier, prompt_cache_key, ...body } = sent?.body ?? {};
    expect([safety_identifier, prompt_cache_key]).toEqual([
      expect.stringMatching(/^[\w-]{43}$/),
      expect.stringMatching(/^[\w-]{43}$/),
    ]);
    expect(body).toEqual({
      model: "gpt-6-sol",
      instructions: "Be brief.",
      input: [
        { type: "message", role: "developer", content: "D" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "Go" }, picture] },
        { type: "message", role: "assistant", content: "Well", phase: "commentary" },
        { type: "function_call", call_id: "c1", name: "files__read", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: [picture] },
      ],
      tools: [
        { type: "function", name: "f", parameters: { type: "object" }, strict: true },
        { type: "custom", name: "patch", format: { type: "text" } },
        { type: "function", name: "files__read", parameters: { type: "object", properties: {} } },
        { type: "custom", name: "late" },
      ],
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "custom", name: "patch" }],
      },
      parallel_tool_calls: false,
      text: { format: { type: "json_object" }, verbosity: "low" },
      reasoning: { effort: "low", summary: "auto", context: "current_turn" },
      max_output_tokens: 300,
      truncation: "auto",
      store: false,
      stream: false,
      service_tier: "default",
      include: INCLUDE,
    });
  });

  it("samples and tells probabilities where the model takes that", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const include = ["message.output_text.logprobs"];
    const fields = { temperature: 0.5, top_logprobs: 2, include };
    await answered(await ask({ model: "mock/old", ...fields }, { bindings }));
    expect(calls[0]?.body).toMatchObject({
      temperature: 0.5,
      top_logprobs: 2,
      include: [...include, ...INCLUDE],
    });
    await answered(await ask(fields, { bindings }));
    expect(Object.keys(calls[1]?.body ?? {})).not.toContain("temperature");
    expect(calls[1]?.body["include"]).toEqual(INCLUDE);
  });

  it("tells customers and end users apart by hashes that name nobody", async () => {
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const other = (await openAccount()).key;
    const fields = { prompt_cache_key: "slot", user: "ann" };
    await answered(await ask(fields, { bindings }));
    await answered(await ask(fields, { bindings }));
    await answered(await ask(fields, { bindings, with: other }));
    await answered(await ask({ user: "bob" }, { bindings }));
    const slots = calls.map(({ body }) => body["prompt_cache_key"]);
    const names = calls.map(({ body }) => body["safety_identifier"]);
    expect(slots[0]).toBe(slots[1]);
    expect(new Set(slots).size).toBe(3);
    expect(names[0]).toBe(names[1]);
    expect(new Set(names).size).toBe(3);
    expect(JSON.stringify(calls.map(({ body }) => body))).not.toMatch(/"(?:slot|ann|bob)"/);
  });

  it("answers under our ids and model, and charges to the micro", async () => {
    const { bindings } = mockOpenAi(() => replied(SAID.json));
    const before = await balanceOf(key);
    const answer = await ask(SHOWN, { bindings });
    const id = answer.headers.get("x-request-id")?.slice("req_".length);
    const said = await answered(answer);
    expect(said).toMatchObject({
      id: `resp_${id}`,
      model: "mock/own",
      status: "completed",
      output: [
        { type: "reasoning", summary: [{ text: "Let me think." }], status: "completed" },
        { type: "message", id: `msg_${id}1`, content: [{ text: HELLO.join("") }] },
        { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
      ],
      usage: { input_tokens: 12, output_tokens: 3, cost_micro: COST },
    });
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("streams what the JSON answer says, numbered by us, its end after the charge", async () => {
    const { calls, bindings } = mockOpenAi(({ body }) =>
      replied(body["stream"] === true ? SAID.stream : SAID.json),
    );
    const json = await answered(await ask(SHOWN, { bindings }));
    const before = await balanceOf(key);
    const { response: whole } = await streamed(await ask({ ...SHOWN, stream: true }, { bindings }));
    expect(calls[1]?.body["stream_options"]).toEqual({ include_obfuscation: false });
    const plain = ({ output }: AnyResponse) => output.map((item) => ({ ...item, id: "" }));
    expect(plain(whole)).toEqual(plain(json));
    expect(whole.usage?.cost_micro).toBe(COST);
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("shows no reasoning where none was asked for, and counts the items without it", async () => {
    const { bindings } = mockOpenAi(() => replied(SAID.stream));
    const { response: whole } = await streamed(await ask({ stream: true }, { bindings }));
    expect(whole.output.map(({ type }) => type)).toEqual(["message", "function_call"]);
  });

  it("names a namespace's tool and a custom tool's input as the client knows them", async () => {
    const custom = JSON.parse(
      JSON.stringify(call("call_2", "files__patch", ["*** Be", 'gin "x"\n😀']))
        .replaceAll('"function_call"', '"custom_tool_call"')
        .replaceAll("function_call_arguments", "custom_tool_call_input")
        .replaceAll('"arguments"', '"input"'),
    ) as ReturnType<typeof call>;
    const said = scenario([call("call_1", "files__read", ['{"a"', ":1}"]), custom]);
    const tools = [
      {
        type: "namespace",
        name: "files",
        tools: [
          { type: "function", name: "read" },
          { type: "custom", name: "patch" },
        ],
      },
    ];
    for (const isStream of [true, false]) {
      const { bindings } = mockOpenAi(() => replied(isStream ? said.stream : said.json));
      const answer = await ask({ tools, stream: isStream }, { bindings });
      const { output } = isStream ? (await streamed(answer)).response : await answered(answer);
      expect(output).toMatchObject([
        { type: "function_call", name: "read", namespace: "files", arguments: '{"a":1}' },
        { type: "custom_tool_call", name: "patch", namespace: "files", input: '*** Begin "x"\n😀' },
      ]);
      vi.restoreAllMocks();
    }
  });

  it("keeps what a text is for, refusals and citations", async () => {
    const cited = {
      type: "url_citation",
      url: "https://x.test",
      title: "X",
      start_index: 0,
      end_index: 2,
    };
    const content = [
      {
        type: "output_text",
        text: "Hm",
        annotations: [cited, { type: "file_path" }],
        logprobs: [],
      },
      { type: "refusal", refusal: "No." },
    ];
    const item = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content,
      phase: "final_answer",
    };
    const { bindings } = mockOpenAi(() => Response.json(response([item])));
    expect((await answered(await ask({}, { bindings }))).output).toMatchObject([
      {
        phase: "final_answer",
        content: [
          { text: "Hm", annotations: [cited] },
          { type: "refusal", refusal: "No." },
        ],
      },
    ]);
  });
});

describe("reasoning on its way back", () => {
  const told = async (fields: object = {}) => {
    const { bindings } = mockOpenAi(() => replied(SAID.json));
    const { output } = await answered(await ask({ ...SHOWN, ...fields }, { bindings }));
    vi.restoreAllMocks();
    return [...output, { type: "function_call_output", call_id: "call_1", output: "done" }];
  };
  const theirs = {
    type: "reasoning",
    summary: [{ type: "summary_text", text: "Let me think." }],
    encrypted_content: ENCRYPTED,
  };

  it("is OpenAI's own again where OpenAI serves, and nothing where another does", async () => {
    const input = await told();
    expect(JSON.stringify(input)).not.toContain(ENCRYPTED); // in an envelope of ours
    const { calls, bindings } = mockOpenAi(({ url }) =>
      url.startsWith(HOST) ? replied(SAID.json) : upstreamCompletion(),
    );
    await answered(await ask({ input }, { bindings }));
    expect((calls[0]?.body["input"] as object[])[0]).toEqual(theirs);
    await answered(await ask({ model: "mock/other", input }, { bindings }));
    expect(JSON.stringify(calls[1]?.body)).not.toContain(ENCRYPTED);
  });

  it("goes with what it led to, or not at all", async () => {
    const [thought] = await told();
    const { calls, bindings } = mockOpenAi(() => replied(SAID.json));
    const user = { role: "user", content: "And?" };
    await answered(await ask({ input: [user, thought, user] }, { bindings }));
    expect(JSON.stringify(calls[0]?.body)).not.toContain(ENCRYPTED);
  });

  it("of another account is left out in one silent repeat", async () => {
    const input = await told();
    const refusal = {
      code: "invalid_encrypted_content",
      message: "Not yours.",
      type: "invalid_request_error",
    };
    const { calls, bindings } = mockOpenAi(({ body }) =>
      JSON.stringify(body).includes(ENCRYPTED) ? upstreamError(400, refusal) : replied(SAID.json),
    );
    const answer = await ask({ input }, { bindings });
    expect(answer.headers.get("x-attempts")).toBe("1");
    await answered(answer);
    const [first, second] = calls.map(({ body }) => body["input"] as object[]);
    expect(second).toEqual(first?.slice(1));
    expect(calls).toHaveLength(2);
  });
});

describe("what goes wrong there", () => {
  it("before the first byte moves on to the next route, converted", async () => {
    for (const reply of [replied(RESPONSES_FAILED.errorFirst), upstreamError(503, {})]) {
      const { calls, bindings } = mockOpenAi(({ url }) =>
        url.startsWith(HOST) ? reply.clone() : upstreamCompletion(),
      );
      const tools = [{ type: "web_search" }];
      const answer = await ask({ model: "mock/both", tools, presence_penalty: 1 }, { bindings });
      expect(answer.headers.get("x-route")).toBe("other:up-chat");
      expect(answer.headers.get("x-dropped")).toBe("tools.web_search");
      expect((await answered(answer)).output).toMatchObject([{ content: [{ text: "hi" }] }]);
      expect(calls.length).toBeGreaterThan(1);
      vi.restoreAllMocks();
    }
  });

  it.each(["errorMid", "cut"] as const)(
    "after it: error, response.failed, [DONE]: %s",
    async (name) => {
      const { bindings } = mockOpenAi(() => replyInPieces(RESPONSES_FAILED[name]));
      const before = await balanceOf(key);
      const { response: whole } = await streamed(await ask({ stream: true }, { bindings }));
      expect(whole).toMatchObject({
        status: "failed",
        error: { code: "server_error" },
        output: [{ content: [{ text: "Hello" }] }],
      });
      expect(await balanceOf(key)).toBe(before);
    },
  );

  it("a failure that the request provoked is paid for", async () => {
    const { bindings } = mockOpenAi(() => replied(RESPONSES_FAILED.provoked.stream));
    const before = await balanceOf(key);
    const { response: whole } = await streamed(await ask({ stream: true }, { bindings }));
    expect(whole).toMatchObject({ status: "failed", usage: { cost_micro: COST } });
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("an answer that was cut is incomplete, gives half a call no end, and is paid for", async () => {
    const half = call("call_1", "f", ['{"a":']);
    const cut = { ...(half.whole as object), status: "incomplete" };
    const end = { status: "incomplete", reason: "max_output_tokens" } as const;
    const events = [
      ...begin(),
      ...itemEvents(half, 0).slice(0, 2),
      { type: "response.incomplete", response: response([cut], end) },
    ];
    const { bindings } = mockOpenAi(() => replied(stream(events)));
    const before = await balanceOf(key);
    const { response: whole, done } = await streamed(await ask({ stream: true }, { bindings }));
    expect(done).toEqual([null]);
    expect(whole).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ status: "incomplete", arguments: '{"a":' }],
      usage: { total_tokens: 15 },
    });
    expect(usage()).toMatchObject({ total_tokens: 15 });
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("an answer that ends where the money does has failed for want of it", async () => {
    const { key: poor } = await openAccount({ credits: 700 });
    const end = { status: "incomplete", reason: "max_output_tokens" } as const;
    const said = scenario([text(["Hel"], "incomplete")], end);
    const { bindings } = mockOpenAi(() => replied(said.stream));
    const answer = await ask({ stream: true }, { bindings, with: poor });
    const { response: whole } = await streamed(answer);
    expect(answer.headers.has("x-granted-max-tokens")).toBe(true);
    expect(whole).toMatchObject({ status: "failed", error: { code: "insufficient_quota" } });
  });

  it("a bad image is told so that Codex takes it out of its history", async () => {
    const param = "input[0].content[0].image_url";
    const error = {
      message: "Bad.",
      param,
      code: "invalid_image_url",
      type: "invalid_request_error",
    };
    const { bindings } = mockOpenAi(() => upstreamError(400, error));
    const refused = await errorOf(await ask({}, { bindings }), 400);
    expect(refused).toMatchObject({ param, code: "invalid_value" });
  });

  it("truncation can only be had there", async () => {
    const { calls, bindings } = mockOpenAi(({ url }) =>
      url.startsWith(HOST) ? upstreamError(503, {}) : upstreamCompletion(),
    );
    const asked = { truncation: "auto" };
    await errorOf(await ask({ model: "mock/both", ...asked }, { bindings }), 503);
    expect(calls.every(({ url }) => url.startsWith(HOST))).toBe(true);
    const refused = await errorOf(await ask({ model: "mock/other", ...asked }, { bindings }), 400);
    expect(refused.param).toBe("truncation");
  });
});
