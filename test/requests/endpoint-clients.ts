import { env } from "cloudflare:workers";
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { expect, vi } from "vitest";
import { app } from "../../src/app.ts";
import { foldMessage } from "../contract/messages-client.ts";
import { bindingsFor } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import { parseEvents } from "../protocols/messages/fold.ts";
import { message as messageSchema } from "../protocols/messages/message-schemas.ts";
import { eventsOf, followResponse } from "../protocols/responses/follow.ts";
import { response as responseSchema } from "../protocols/responses/sdk-schemas.ts";

/** A call of a tool, independent of any format. */
export type Call = { readonly id: string; readonly name: string; readonly input: object };

/** The content of a response, independent of any format. */
export type ReadResponse = {
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly Call[];
  readonly end: "stop" | "calls" | "length" | "refusal";
  /** Tokens of the prompt, its cached part, and the output. */
  readonly used: readonly [prompt: number, cached: number, output: number];
  /** The response as its client sends it back. */
  readonly turn: readonly object[];
};

/** A request: a conversation in the endpoint's format, and its options. */
export type RequestOptions = {
  readonly turns: readonly object[];
  readonly stream?: boolean;
  readonly tools?: boolean;
  readonly schema?: boolean;
  readonly thinks?: boolean;
};

/** An endpoint as a client uses it. */
export type EndpointClient = {
  readonly name: "chat" | "messages" | "responses";
  readonly path: string;
  readonly body: (options: RequestOptions) => object;
  readonly user: (text: string, image?: string) => object;
  readonly called: (calls: readonly Call[]) => readonly object[];
  readonly results: (calls: readonly Call[]) => readonly object[];
  /** Throws for responses in another format. */
  readonly read: (text: string, stream: boolean) => ReadResponse;
  /** Matches the end of a broken stream after its text so far. */
  readonly broken: RegExp;
};

const MODEL = "test/chat";
const PARAMETERS = { type: "object", properties: { city: { type: "string" } } };
const TOOLS = ["get_weather", "get_time"];
const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
/** The cap that one protocol's fixtures use as the end. Thinking needs more. */
const capOf = ({ thinks }: RequestOptions): number => (thinks === true ? 2048 : 256);

const resultOf = ({ id }: Call): string => `result of ${id}`;
const parsed = (json: string): object => JSON.parse(json === "" ? "{}" : json) as object;

type Message = {
  readonly content: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
};

const CHAT: EndpointClient = {
  name: "chat",
  path: "/v1/chat/completions",
  body: (options) => ({
    model: MODEL,
    messages: options.turns,
    max_tokens: capOf(options),
    ...(options.thinks === true && { reasoning_effort: "low" }),
    ...(options.tools === true && {
      tools: TOOLS.map((name) => ({
        type: "function",
        function: { name, parameters: PARAMETERS },
      })),
    }),
  }),
  user: (content) => ({ role: "user", content }),
  called: (calls) => [
    {
      role: "assistant",
      content: null,
      tool_calls: calls.map(({ id, name, input }) => ({
        id,
        type: "function",
        function: { name, arguments: JSON.stringify(input) },
      })),
    },
  ],
  results: (calls) =>
    calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: resultOf(call) })),
  read(text) {
    const { choices } = JSON.parse(text) as { choices: { message: Message }[] };
    const message = choices[0]?.message;
    if (message === undefined) throw new Error("no choice");
    const calls = (message.tool_calls ?? []).map(({ id, function: called }) => ({
      id,
      name: called.name,
      input: parsed(called.arguments),
    }));
    return {
      text: message.content ?? "",
      thought: message.reasoning_content ?? "",
      calls,
      end: calls.length > 0 ? "calls" : "stop",
      used: [0, 0, 0],
      turn: [message],
    };
  },
  broken: /"error":\{[^\n]*\n\n$/,
};

const RESPONSES: EndpointClient = {
  name: "responses",
  path: "/v1/responses",
  body: (options) => ({
    model: MODEL,
    input: options.turns,
    max_output_tokens: capOf(options),
    ...(options.stream === true && { stream: true }),
    ...(options.tools === true && {
      tools: TOOLS.map((name) => ({ type: "function", name, parameters: PARAMETERS })),
    }),
    ...(options.schema === true && {
      text: { format: { type: "json_schema", name: "place", schema: SCHEMA, strict: true } },
    }),
    ...(options.thinks === true && {
      reasoning: { effort: "low", summary: "auto" },
      include: ["reasoning.encrypted_content"],
    }),
  }),
  user: (text, image) => ({
    role: "user",
    content: [
      { type: "input_text", text },
      ...(image === undefined ? [] : [{ type: "input_image", image_url: image }]),
    ],
  }),
  called: (calls) =>
    calls.map(({ id, name, input }) => ({
      type: "function_call",
      call_id: id,
      name,
      arguments: JSON.stringify(input),
    })),
  results: (calls) =>
    calls.map((call) => ({
      type: "function_call_output",
      call_id: call.id,
      output: resultOf(call),
    })),
  read(text, stream) {
    const whole = stream
      ? followResponse(eventsOf(text)).response
      : responseSchema.parse(JSON.parse(text));
    const { output, status, incomplete_details: cut, usage } = whole;
    const calls = output.flatMap((item) =>
      item.type === "function_call"
        ? [{ id: item.call_id, name: item.name, input: parsed(item.arguments) }]
        : [],
    );
    if (usage === null) throw new Error(`it is ${status}`);
    return {
      text: output
        .flatMap((item) => (item.type === "message" ? item.content : []))
        .map((part) => (part.type === "output_text" ? part.text : part.refusal))
        .join(""),
      thought: output
        .flatMap((item) => (item.type === "reasoning" ? item.summary : []))
        .map((part) => part.text)
        .join(""),
      calls,
      end: endOf(status, cut?.reason, calls.length > 0),
      used: [usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens],
      turn: output,
    };
  },
  broken: /event: error\n[^\n]*\n\nevent: response\.failed\n[^\n]*\n\ndata: \[DONE\]\n\n$/,
};

function endOf(status: string, cut: string | undefined, hasCalls: boolean): ReadResponse["end"] {
  if (status === "completed") return hasCalls ? "calls" : "stop";
  if (status !== "incomplete") throw new Error(`it is ${status}`);
  return cut === "max_output_tokens" ? "length" : "refusal";
}

const ENDS = {
  end_turn: "stop",
  tool_use: "calls",
  max_tokens: "length",
  refusal: "refusal",
  stop_sequence: "stop",
} as const;

const MESSAGES: EndpointClient = {
  name: "messages",
  path: "/v1/messages",
  body: (options) => ({
    model: MODEL,
    messages: options.turns,
    max_tokens: capOf(options),
    ...(options.stream === true && { stream: true }),
    ...(options.tools === true && {
      tools: TOOLS.map((name) => ({ name, input_schema: PARAMETERS })),
    }),
    ...(options.schema === true && {
      output_config: { format: { type: "json_schema", schema: SCHEMA } },
    }),
    ...(options.thinks === true && { thinking: { type: "enabled", budget_tokens: 1024 } }),
  }),
  user: (text, image) => {
    const data = image?.replace(/^[^,]*,/, "");
    const source = { type: "base64", media_type: "image/png", data };
    return {
      role: "user",
      content: [
        { type: "text", text },
        ...(image === undefined ? [] : [{ type: "image", source }]),
      ],
    };
  },
  called: (calls) => [
    { role: "assistant", content: calls.map((call) => ({ type: "tool_use", ...call })) },
  ],
  results: (calls) => [
    {
      role: "user",
      content: calls.map((call) => ({
        type: "tool_result",
        tool_use_id: call.id,
        content: resultOf(call),
      })),
    },
  ],
  read(text, stream) {
    const pinged = stream ? parseEvents(text).filter(({ name }) => name !== "ping") : [];
    const whole = messageSchema.parse(stream ? foldMessage(pinged).message : JSON.parse(text));
    const { content, stop_reason: reason, usage } = whole;
    const { input_tokens: input, cache_read_input_tokens: read } = usage;
    return {
      text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
      thought: content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
      calls: content.flatMap((block) =>
        block.type === "tool_use" ? [{ id: block.id, name: block.name, input: block.input }] : [],
      ),
      end: ENDS[reason],
      used: [input + read + usage.cache_creation_input_tokens, read, usage.output_tokens],
      turn: [{ role: "assistant", content }],
    };
  },
  broken: /event: error\ndata: \{"type":"error",[^\n]*\}\n\n$/,
};

export const ENDPOINT_CLIENTS = { chat: CHAT, messages: MESSAGES, responses: RESPONSES } as const;

/** A response's status, text and provider. */
export type EndpointResult = {
  readonly status: number;
  readonly text: string;
  readonly route: string | null;
};

/**
 * Calls an endpoint of a deployment with one model of these providers. The network must be
 * replaced.
 */
export async function callEndpoint(
  endpoint: EndpointClient,
  { key, providers, options }: EndpointCall,
): Promise<EndpointResult> {
  withoutPauses();
  const context = createExecutionContext();
  const response = await app.fetch(
    new Request(`https://eu.test${endpoint.path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(endpoint.body(options)),
    }),
    { ...env, ...bindingsFor(providers) },
    context,
  );
  const text = await response.text();
  await waitOnExecutionContext(context);
  return { status: response.status, text, route: response.headers.get("x-route") };
}

const PAUSE_MS_MAX = 300;

/** Skips the pause before a retry, but no other timer. */
function withoutPauses(): void {
  const later = globalThis.setTimeout;
  vi.spyOn(globalThis, "setTimeout").mockImplementation((run: () => void, ms = 0) =>
    later(run, ms <= PAUSE_MS_MAX ? 0 : ms),
  );
}

type EndpointCall = {
  readonly key: string;
  readonly providers: readonly ChatProvider[];
  readonly options: RequestOptions;
};

/** Returns the content of a 200 at an endpoint. */
export function readResponse(
  endpoint: EndpointClient,
  { status, text }: EndpointResult,
  stream = false,
): ReadResponse {
  expect([status, text]).toEqual([200, expect.any(String)]);
  return endpoint.read(text, stream);
}

/** Returns the balance of the key's organization in micro-credits. */
export async function balanceOf(key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  const request = new Request("https://eu.test/v1/balance", { headers });
  const response = await app.fetch(request, env, createExecutionContext());
  return (await response.json<{ credits_micro: number }>()).credits_micro;
}
