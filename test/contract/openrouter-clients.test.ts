import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, eventsOf, HELLO, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { mockUpstream, upstreamCompletion } from "./upstream.ts";

type Json = { readonly [name: string]: unknown };
type Client = {
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a chat, without its model and messages. */
  readonly body: Json;
  /** Returns the dollars that the client shows for a stream's chunks. */
  readonly cost: (chunks: readonly Json[]) => unknown;
  /** The other calls, and the fields that each must return, as paths below its body. */
  readonly reads: Readonly<Record<string, readonly string[]>>;
};

const ROWS = ["data.0.id", "data.0.pricing.prompt", "data.0.pricing.completion"];
const LIST = [...ROWS, "data.0.context_length"];
const KEY = [
  "label",
  "usage",
  "is_free_tier",
  "is_provisioning_key",
  "rate_limit.requests",
  "limit",
];
const tools = [
  { type: "function", function: { name: "read_file", parameters: { type: "object" } } },
];
const lastUsage = (chunks: readonly Json[]) =>
  chunks.findLast(({ usage }) => usage)?.["usage"] as Json;

const CLINE_3 = {
  "user-agent": "ai-sdk/openai-compatible/3.0.37 ai-sdk/provider-utils/5.0.30 runtime/bun/1.3.13",
};

/** Calls of clients with their settings for hosts that are compatible with OpenRouter, as their code makes them. */
const CLIENTS: Readonly<Record<string, Client>> = {
  Cline: {
    headers: { "http-referer": "https://cline.bot", "x-title": "Cline" },
    body: {
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
      include_reasoning: true,
      reasoning: { effort: "low" },
      provider: { sort: "throughput" },
      tools,
      tool_choice: "auto",
      parallel_tool_calls: false,
    },
    cost: (chunks) => {
      const { cost = 0, cost_details: details } = lastUsage(chunks);
      const { upstream_inference_cost: upstream = 0 } = (details ?? {}) as Json;
      return Number(cost) + Number(upstream);
    },
    reads: {
      "/v1/models": [...LIST, "data.0.top_provider.max_completion_tokens", "data.0.architecture"],
      "/v1/generation?id=": [
        "data.total_cost",
        "data.native_tokens_prompt",
        "data.native_tokens_cached",
      ],
    },
  },
  /**
   * Recorded from Cline 3.0.65. It reads `usage.raw.cost`, but its version of the AI SDK (7.0.79)
   * discards `raw` when it adds up steps. It then uses its own prices, which it lacks for this
   * provider.
   */
  "Cline 3 as an OpenAI-compatible client": {
    headers: CLINE_3,
    body: {
      reasoning_effort: "low",
      tools,
      tool_choice: "auto",
      stream: true,
      stream_options: { include_usage: true },
    },
    cost: (chunks) => lastUsage(chunks)["cost"],
    reads: {},
  },
  /** Its provider `openrouter` multiplies tokens by known prices, here those of sandbox/echo. */
  "Cline 3 as a client of OpenRouter": {
    headers: CLINE_3,
    body: {
      max_tokens: 32_000,
      reasoning_effort: "low",
      tools,
      tool_choice: "auto",
      stream: true,
      stream_options: { include_usage: true },
      session_id: "1795804526916_8f0k0",
    },
    cost: (chunks) => {
      const { prompt_tokens: input, completion_tokens: output } = lastUsage(chunks);
      return (Number(input) + Number(output) * 2) / 1e6;
    },
    reads: {},
  },
  Kilo: {
    headers: { "http-referer": "https://kilocode.ai", "x-title": "Kilo Code" },
    body: {
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
      transforms: ["middle-out"],
      reasoning: { effort: "medium" },
      provider: {
        order: ["sandbox"],
        allow_fallbacks: false,
        data_collection: "allow",
        zdr: false,
      },
      tools,
    },
    cost: (chunks) => {
      const { cost, cost_details: details, is_byok: isByok } = lastUsage(chunks);
      const { upstream_inference_cost: upstream = 0 } = (details ?? {}) as Json;
      return isByok === true ? upstream : cost;
    },
    reads: {
      "/v1/models": [
        ...LIST,
        "data.0.supported_parameters",
        "data.0.architecture.input_modalities",
      ],
      "/v1/key": KEY.map((field) => `data.${field}`),
    },
  },
  "Open WebUI": {
    headers: { "http-referer": "https://openwebui.com/", "x-title": "Open WebUI" },
    body: { stream: true, stream_options: { include_usage: true } },
    cost: (chunks) => {
      const names = ["cost", "total_cost", "input_cost", "output_cost"];
      const sums = chunks.map(({ usage }) =>
        names.map((name) => (usage as Json | null)?.[name] ?? 0),
      );
      return sums.flat().reduce<number>((sum, one) => sum + Number(one), 0);
    },
    reads: { "/v1/models": ["object", "data.0.id", "data.0.name"] },
  },
  LibreChat: {
    headers: { "http-referer": "https://librechat.ai", "x-title": "LibreChat" },
    body: {
      stream: true,
      stream_options: { include_usage: true },
      user: "65f0c0ffee",
      include_reasoning: true,
    },
    cost: (chunks) => lastUsage(chunks)["cost"],
    reads: { "/v1/models": LIST },
  },
};

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

function at(value: unknown, path: string): unknown {
  return path.split(".").reduce((inner, name) => (inner as Json | undefined)?.[name], value);
}

describe.each(Object.entries(CLIENTS))(
  "the OpenRouter client %s",
  (_, { headers, body, cost, reads }) => {
    it("receives the cost of a stream, and the documented fields of other calls", async () => {
      const { key } = account;
      const before = await balanceOf(key);
      const sent = { model: "sandbox/echo", messages: HELLO, ...body };
      const response = await send("/v1/chat/completions", { key, headers, body: sent });
      expect(response.status).toBe(200);
      const events = await eventsOf(response);
      expect(events.at(-1)).toBe("[DONE]");
      const chunks = events.slice(0, -1).map((event) => JSON.parse(event) as Json);
      const charged = before - (await balanceOf(key));
      expect(charged).toBeGreaterThan(0);
      expect(cost(chunks)).toBe(charged / 1_000_000);
      for (const [path, fields] of Object.entries(reads)) {
        const whole = path.endsWith("=") ? path + String(chunks[0]?.["id"]) : path;
        const read = await (await send(whole, { key, headers })).json();
        expect([path, fields.filter((field) => at(read, field) === undefined)]).toEqual([path, []]);
      }
    });
  },
);

async function reasoningTokens(fields: object): Promise<unknown> {
  const body = { model: "sandbox/think", messages: HELLO, max_tokens: 500, ...fields };
  const response = await send("/v1/chat/completions", { key: account.key, body });
  const { usage } = await response.json<{ usage: Json }>();
  return at(usage, "completion_tokens_details.reasoning_tokens");
}

describe("reasoning in OpenRouter's format", () => {
  it("sets the reasoning effort or turns reasoning off", async () => {
    const off = await reasoningTokens({ reasoning_effort: "none" });
    const high = await reasoningTokens({ reasoning_effort: "high" });
    expect(high).not.toBe(off);
    expect(await reasoningTokens({ reasoning: { enabled: false } })).toBe(off);
    expect(await reasoningTokens({ reasoning: { effort: "high" } })).toBe(high);
  });

  it("derives the reasoning effort from the share of max_tokens that reasoning may use", async () => {
    const efforts = [0, 20, 90, 200, 300, 450].map((max_tokens) => ({ max_tokens }));
    const sent: unknown[] = [];
    for (const reasoning of efforts) {
      const body = { model: "mock/chat", messages: HELLO, max_tokens: 500, reasoning };
      sent.push((await sentUpstream(body))["reasoning_effort"]);
    }
    expect(sent).toEqual(["none", "minimal", "low", "medium", "high", "xhigh"]);
  });
});

/** Returns the body that a provider receives. */
async function sentUpstream(body: Json): Promise<Json> {
  const { calls, bindings } = mockUpstream(() => upstreamCompletion());
  const response = await send("/v1/chat/completions", { key: account.key, body, bindings });
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  return calls[0]?.body ?? {};
}

type Reasoned = { readonly reasoning?: string; readonly reasoning_details?: readonly Json[] };
const SDK = { "user-agent": "speakeasy-sdk/typescript 1.3.19 openrouter" };

/** Returns the reasoning of a response, joined as OpenRouter's clients join it. */
async function reasoningOf(request: {
  readonly headers?: Record<string, string>;
  readonly body: Json;
}) {
  const { headers = {}, body } = request;
  const sent = { model: "sandbox/think", messages: HELLO, max_tokens: 500, ...body };
  const response = await send("/v1/chat/completions", { key: account.key, headers, body: sent });
  if (body["stream"] !== true) {
    const { choices } = await response.json<{ choices: { message: Reasoned }[] }>();
    return choices[0]?.message ?? {};
  }
  const events = (await eventsOf(response)).slice(0, -1);
  const deltas = events.flatMap((event) => {
    const { choices } = JSON.parse(event) as { choices: { delta: Reasoned }[] };
    return choices.map(({ delta }) => delta);
  });
  const details: Json[] = [];
  for (const one of deltas.flatMap(({ reasoning_details: list = [] }) => list)) {
    const last = details.at(-1);
    if (one["type"] !== "reasoning.text" || last?.["type"] !== "reasoning.text") details.push(one);
    else details.splice(-1, 1, { ...last, text: String(last["text"]) + String(one["text"]) });
  }
  const reasoning = deltas.map((one) => one.reasoning ?? "").join("");
  return { reasoning, reasoning_details: details };
}

describe("an OpenRouter client's request for reasoning", () => {
  it.each<[string, { headers?: Record<string, string>; body: Json }]>([
    ["an OpenRouter SDK", { headers: SDK, body: {} }],
    ["an OpenRouter SDK, streamed", { headers: SDK, body: { stream: true } }],
    ["the field reasoning", { body: { reasoning: { effort: "high" } } }],
    ["the field include_reasoning", { body: { include_reasoning: true, stream: true } }],
  ])(
    "returns reasoning in the fields reasoning and reasoning_details with %s",
    async (_, request) => {
      const { reasoning, reasoning_details: details = [] } = await reasoningOf(request);
      expect(reasoning).not.toBe("");
      expect(details).toMatchObject([
        { type: "reasoning.text", text: reasoning, format: "unknown" },
        { type: "reasoning.encrypted", data: expect.any(String) as string },
      ]);
    },
  );

  it.each<[string, Json]>([
    ["reasoning.exclude", { reasoning: { effort: "high", exclude: true } }],
    ["include_reasoning: false", { include_reasoning: false }],
    ["only reasoning.exclude, streamed", { reasoning: { exclude: true }, stream: true }],
    ["include_reasoning: false, streamed", { include_reasoning: false, stream: true }],
  ])("omits reasoning from the response with %s, but counts it in the usage", async (_, fields) => {
    const body = { model: "sandbox/think", messages: HELLO, max_tokens: 500, ...fields };
    const response = await send("/v1/chat/completions", { key: account.key, headers: SDK, body });
    const text = await response.text();
    expect(text).not.toMatch(/"reasoning(_content|_details)?":/);
    expect(text).not.toMatch(
      /"delta":\{\}[^{}]*"finish_reason":null|"finish_reason":null,"delta":\{\}/,
    );
    expect(text).toMatch(/"content":"/);
    expect(text).toMatch(/"reasoning_tokens":[1-9]/);
  });

  it.each<Json>([{}, { exclude: true }, { exclude: false, max_tokens: 50 }, { enabled: false }])(
    "causes a 400 for an unknown effort combined with %j",
    async (fields) => {
      const reasoning = { effort: "extreme", ...fields };
      const body = { model: "sandbox/think", messages: HELLO, reasoning };
      const response = await send("/v1/chat/completions", { key: account.key, body });
      expect(response.status).toBe(400);
      const { error } = await response.json<{ error: Json }>();
      expect(error).toMatchObject({ param: "reasoning.effort" });
    },
  );

  it("returns reasoning in OpenRouter's format only to OpenRouter's clients", async () => {
    expect(await reasoningOf({ body: {} })).not.toHaveProperty("reasoning");
    const details = (await reasoningOf({ body: {} })).reasoning_details;
    expect(details?.map(({ type }) => type)).toEqual(["sandbox.thinking"]);
  });

  it("sends reasoning to the provider unchanged if the client sends it back", async () => {
    const own = {
      type: "reasoning.text",
      text: "theirs",
      signature: "s",
      format: "x-v1",
      index: 0,
    };
    const { reasoning, reasoning_details: details = [] } = await reasoningOf({
      headers: SDK,
      body: { stream: true },
    });
    const plain = (await reasoningOf({ body: {} })).reasoning_details;
    const assistant = { role: "assistant", content: "Hi", reasoning };
    const messages = [...HELLO, { ...assistant, reasoning_details: [...details, own] }, ...HELLO];
    const { messages: sent } = await sentUpstream({ model: "mock/chat", messages });
    expect(plain).toMatchObject([{ type: "sandbox.thinking", thinking: reasoning }]);
    expect((sent as Json[])[1]).toEqual({
      role: "assistant",
      content: "Hi",
      reasoning_content: reasoning,
      reasoning_details: [own],
    });
  });
});

describe("an error inside a stream", () => {
  it.each([
    ["/v1/chat/completions", { messages: HELLO }, "chat.completion.chunk", { delta: {} }],
    ["/v1/completions", { prompt: "Hi" }, "text_completion", { text: "", logprobs: null }],
  ])(
    "contains the HTTP status as error code in a complete chunk for OpenRouter's SDKs at %s",
    async (path, fields, object, choice) => {
      const body = { model: "sandbox/error-mid", stream: true, ...fields };
      const response = await send(path, { key: account.key, headers: SDK, body });
      const last = JSON.parse((await eventsOf(response)).at(-1) ?? "") as Json;
      expect(last).toMatchObject({
        object,
        choices: [{ index: 0, ...choice, finish_reason: "error" }],
        error: { code: 502, message: expect.any(String) as string },
      });
    },
  );
});
