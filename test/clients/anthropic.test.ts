import Anthropic, { AuthenticationError, BadRequestError, NotFoundError } from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import Anthropic0 from "@anthropic-ai/sdk0";
import { betaTool as betaTool0 } from "@anthropic-ai/sdk0/helpers/beta/json-schema";
import { describe, expect, it } from "vitest";
import {
  event as eventSchema,
  message as messageSchema,
  refusal as refusalSchema,
} from "../protocols/messages/message-schemas.ts";
import type { AnyMessage, AnyRefusal } from "../protocols/messages/message-schemas.ts";
import { EXPECTED_CONVERSATION, TURNS, Weather } from "./conversation.ts";
import { CLAUDE, GPT, authorGateway } from "./author-gateway.ts";

const at = await authorGateway();
const client = (apiKey = at.key) => new Anthropic({ apiKey, baseURL: at.origin, maxRetries: 0 });
const params = {
  model: "sandbox/echo",
  max_tokens: 200,
  messages: [{ role: "user" as const, content: "Hello from a client" }],
};
const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");
const tools: Anthropic.Tool[] = [
  {
    name: "get_weather",
    input_schema: { type: "object", properties: { city: { type: "string" } } },
  },
];

it("Anthropic's SDK creates a message, which is charged", async () => {
  const before = await at.balance();
  const message = await client().messages.create(params);
  expect(textOf(message)).toContain("Hello from a client");
  expect(message.stop_reason).toBe("end_turn");
  expect(message.usage.output_tokens).toBeGreaterThan(0);
  expect(await at.balance()).toBeLessThan(before);
});

/**
 * Strict schemas of the gateway's responses and events, with types that must match the SDK's. A
 * field that is missing or differs fails to compile or to parse.
 */
const typed = {
  message: (response: unknown): Anthropic.Message => {
    const message = messageSchema.parse(response);
    return { ...message, content: message.content.map(asDeclared) };
  },
  event: (response: unknown): Anthropic.RawMessageStreamEvent => {
    const event = eventSchema.parse(response);
    if (event.type === "ping" || event.type === "error") throw new Error(event.type);
    if (event.type !== "content_block_start") return event;
    return { ...event, content_block: asDeclared(event.content_block) };
  },
  /** The SDK has no type for one of our documented error types. */
  refused: (response: unknown): Exclude<AnyRefusal["error"]["type"], "request_too_large"> => {
    const { type } = refusalSchema.parse(response).error;
    if (type === "request_too_large") throw new Error(type);
    return type satisfies Anthropic.ErrorType;
  },
};

/** The SDK requires `citations` in every text. Anthropic and the gateway omit an empty list. */
function asDeclared(block: AnyMessage["content"][number]): Anthropic.ContentBlock {
  return block.type === "text" ? { ...block, citations: block.citations ?? null } : block;
}

it.each([
  ["a text", params],
  ["thoughts", { ...params, model: "sandbox/think" }],
  ["a call", { ...params, tools, tool_choice: { type: "any" as const } }],
])(
  "Anthropic's SDK gets responses that match the SDK's types for %s, as JSON and streamed",
  async (_, question) => {
    const { content } = typed.message(await client().messages.create(question));
    const kinds = new Set<string>();
    for await (const event of await client().messages.create({ ...question, stream: true })) {
      const known = typed.event(event);
      if (known.type === "content_block_start") kinds.add(known.content_block.type);
    }
    expect([...kinds]).toEqual([...new Set(content.map(({ type }) => type))]);
  },
);

it("Anthropic's SDK streams a message with the SDK's stream helper", async () => {
  const stream = client().messages.stream(params);
  const parts: string[] = [];
  stream.on("text", (part) => parts.push(part));
  expect(textOf(await stream.finalMessage())).toBe(parts.join(""));
});

it("Anthropic's SDK calls a tool and sends the tool's result", async () => {
  const first = await client().messages.create({ ...params, tools, tool_choice: { type: "any" } });
  const use = first.content.find((block) => block.type === "tool_use");
  expect(use?.name).toBe("get_weather");
  const last = await client().messages.create({
    ...params,
    tools,
    messages: [
      ...params.messages,
      { role: "assistant", content: first.content },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: use?.id ?? "", content: "21 degrees" }],
      },
    ],
  });
  expect(textOf(last)).toBeTruthy();
});

it.each([false, true])(
  "Anthropic's tool runner completes a tool loop, and retries without the beta field 'thread' (streamed: %s)",
  async (stream) => {
    const run = (): string => "21 degrees";
    const parse = (input: unknown): unknown => input;
    const runner = client().beta.messages.toolRunner({
      ...params,
      model: "sandbox/agent",
      tools: [{ name: "look", input_schema: { type: "object" as const }, run, parse }],
      stream,
    });
    const { content } = await runner.runUntilDone();
    expect(JSON.stringify(content)).toContain("21 degrees");
  },
);

it("Anthropic's SDK counts tokens free of charge", async () => {
  const before = await at.balance();
  const { input_tokens: tokens } = await client().messages.countTokens({
    model: params.model,
    messages: params.messages,
  });
  expect(tokens).toBeGreaterThan(0);
  expect(await at.balance()).toBe(before);
});

it("Anthropic's SDK doesn't retry a 402, and exposes the gateway's error code and amounts", async () => {
  let requests = 0;
  const poor = new Anthropic({
    apiKey: await at.keyOf({ credits: 0 }),
    baseURL: at.origin,
    fetch: (...request) => {
      requests++;
      return fetch(...request);
    },
  });
  await expect(poor.messages.create(params)).rejects.toMatchObject({
    status: 402,
    errorCode: "insufficient_balance",
    details: { balance_micro: 0, required_micro: expect.any(Number) },
  });
  expect(requests).toBe(1);
});

it("Anthropic's SDK throws Anthropic's error classes for the gateway's errors", async () => {
  const { messages } = client();
  await expect(messages.create({ ...params, model: "sandbox/none" })).rejects.toBeInstanceOf(
    NotFoundError,
  );
  await expect(messages.create({ ...params, max_tokens: 0 })).rejects.toBeInstanceOf(
    BadRequestError,
  );
  const { error } = await messages.create({ ...params, max_tokens: -1 }).then(
    () => ({ error: null }),
    (caught: unknown) => caught as BadRequestError,
  );
  expect(typed.refused(error)).toBe("invalid_request_error");
  await expect(client("svc_sk_none").messages.create(params)).rejects.toBeInstanceOf(
    AuthenticationError,
  );
});

/** The supported major versions. The calls in this file have the same types in both. */
const MAJORS = {
  0: {
    Sdk: Anthropic0 as unknown as typeof Anthropic,
    toolOf: betaTool0 as unknown as typeof betaTool,
  },
  1: { Sdk: Anthropic, toolOf: betaTool },
};

describe.each(Object.entries(MAJORS))(
  "a conversation of three messages with a tool in @anthropic-ai/sdk %s",
  (_, { Sdk, toolOf }) => {
    const own = () => new Sdk({ apiKey: at.key, baseURL: at.origin, maxRetries: 0 });
    const cases = ["sandbox/agent", GPT, CLAUDE].flatMap((model) =>
      [false, true].map((stream) => ({ model, stream })),
    );

    it.each(cases)(
      "completes with the SDK's tool runner, $model, streamed: $stream",
      async ({ model, stream }) => {
        const weather = new Weather();
        const { name, description, parameters: inputSchema } = weather;
        const tool = toolOf({
          name,
          description,
          inputSchema,
          run: ({ city }) => weather.call(String(city)),
        });
        let messages: Anthropic.Beta.BetaMessageParam[] = [];
        const texts: string[] = [];
        for (const content of TURNS) {
          messages.push({ role: "user", content });
          const request = { model, max_tokens: 1000, messages, tools: [tool] };
          const runner = own().beta.messages.toolRunner({ ...request, stream });
          const last = await runner.runUntilDone();
          texts.push(
            last.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
          );
          messages = [...runner.params.messages];
        }
        expect({ cities: weather.cities, texts }).toEqual(EXPECTED_CONVERSATION);
      },
    );

    it.each(cases)(
      "completes with a hand-written tool loop, $model, streamed: $stream",
      async ({ model, stream }) => {
        const weather = new Weather();
        const { name, description, parameters: input_schema } = weather;
        const messages: Anthropic.MessageParam[] = [];
        const texts: string[] = [];
        for (const content of TURNS) {
          messages.push({ role: "user", content });
          for (let isOver = false; !isOver;) {
            const request = {
              model,
              max_tokens: 1000,
              messages,
              tools: [{ name, description, input_schema }],
            };
            const answer = stream
              ? await own().messages.stream(request).finalMessage()
              : await own().messages.create(request);
            messages.push({ role: "assistant", content: answer.content });
            const results = answer.content.flatMap((block) =>
              block.type === "tool_use"
                ? [
                    {
                      type: "tool_result" as const,
                      tool_use_id: block.id,
                      content: weather.call((block.input as { city: string }).city),
                    },
                  ]
                : [],
            );
            isOver = results.length === 0;
            if (isOver) texts.push(textOf(answer));
            else messages.push({ role: "user", content: results });
          }
        }
        expect({ cities: weather.cities, texts }).toEqual(EXPECTED_CONVERSATION);
      },
    );
  },
);
