import OpenAI, { BadRequestError } from "openai";
import { env } from "cloudflare:workers";
import { createExecutionContext } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { app } from "../../src/app.ts";
import { IS_LONG } from "../effort.ts";
import { mockNetwork } from "../providers/adapter-kit.ts";
import { openOrganization } from "../fixtures/worker-app.ts";
import { bindingsFor, TRIED_PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import type { ChatScenarios } from "../fixtures/reply-scenarios.ts";

/** The official SDK with the whole application and each provider's own format. */
let key: string;
beforeAll(async () => {
  ({ key } = await openOrganization({ credits: 1_000_000_000 }));
});

const TOOLS: OpenAI.ChatCompletionFunctionTool[] = ["get_weather", "get_time"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: { city: { type: "string" } } } },
}));
const PLACE = {
  type: "json_schema" as const,
  json_schema: {
    name: "place",
    schema: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city", "days"],
    },
  },
};
const CITY = '{"city":"Paris"}';

function sdk(provider: ChatProvider): OpenAI {
  const bindings = { ...env, ...bindingsFor([provider]) };
  return new OpenAI({
    apiKey: key,
    baseURL: "https://eu.test/v1",
    maxRetries: 0,
    fetch: async (url, init) => {
      const request = new Request(url, init);
      return app.fetch(request, bindings, createExecutionContext());
    },
  });
}

type Message = {
  readonly content: string | null;
  readonly refusal?: string | null;
  readonly tool_calls?: readonly OpenAI.ChatCompletionMessageToolCall[] | null;
  readonly reasoning_content?: string;
};
type Read = {
  readonly message: Message;
  readonly finish: string;
  readonly usage: OpenAI.CompletionUsage | undefined;
};

/** Returns the SDK's result for a scenario, as JSON or by `.stream()`, which joins the events. */
async function read(
  provider: ChatProvider,
  name: keyof ChatScenarios,
  stream: boolean,
): Promise<Read> {
  const client = sdk(provider);
  mockNetwork(provider.chat[name][stream ? "stream" : "json"]);
  const body = {
    model: "test/chat",
    messages: [{ role: "user" as const, content: "Hi" }],
    ...(name.startsWith("tool") && { tools: TOOLS }),
    ...(name === "schema" && { response_format: PLACE }),
    ...(name === "length" && { max_tokens: 256 }),
    ...(name === "reasoning" && { reasoning_effort: "low" as const }),
  };
  if (!stream) {
    const completion = await client.chat.completions.create(body);
    const [choice] = completion.choices;
    if (choice === undefined) throw new Error("no choice");
    return { message: choice.message, finish: choice.finish_reason, usage: completion.usage };
  }
  const runner = client.chat.completions.stream({
    ...body,
    stream_options: { include_usage: true },
  });
  let reasoning = "";
  runner.on("chunk", (chunk) => {
    reasoning += (chunk.choices[0]?.delta as Partial<Message> | undefined)?.reasoning_content ?? "";
  });
  const completion = await runner.finalChatCompletion();
  const [choice] = completion.choices;
  if (choice === undefined) throw new Error("no choice");
  const message: Message = { ...choice.message, reasoning_content: reasoning };
  return { message, finish: choice.finish_reason, usage: completion.usage };
}

function calls(message: Message): unknown[] {
  return (message.tool_calls ?? []).map((call) =>
    call.type === "function" ? [call.function.name, JSON.parse(call.function.arguments)] : call,
  );
}

/** A long run tests each provider in both forms. Otherwise, each has one form, in turn. */
const FORMS = [
  ["JSON", false],
  ["a stream", true],
] as const;

describe.each(TRIED_PROVIDERS.map((provider) => [provider.name, provider] as const))(
  "the provider %s",
  (_, provider) => {
    const turn = TRIED_PROVIDERS.indexOf(provider) % FORMS.length;
    describe.each(FORMS.filter((__, at) => IS_LONG || at === turn))(
      "a response as %s",
      (__, stream) => {
        it("contains text, finish reason and usage with cached tokens", async () => {
          const { message, finish, usage } = await read(provider, "text", stream);
          expect(message).toMatchObject({ content: "Hello, 世界!" });
          expect(finish).toBe("stop");
          expect(usage).toMatchObject({
            prompt_tokens: 12,
            completion_tokens: 3,
            total_tokens: 15,
            prompt_tokens_details: { cached_tokens: provider.tellsCached ? 4 : 0 },
          });
        });

        it("contains one tool call, with an ID, after a text", async () => {
          const { message, finish } = await read(provider, "tool", stream);
          expect(finish).toBe("tool_calls");
          expect(calls(message)).toEqual([["get_weather", JSON.parse(CITY)]]);
          expect(message.tool_calls?.[0]?.id).toMatch(/^\S+$/);
        });

        it("contains parallel tool calls with unique IDs, one without arguments", async () => {
          const { message, finish } = await read(provider, "tools", stream);
          expect(finish).toBe("tool_calls");
          expect(calls(message)).toEqual([
            ["get_weather", { city: "Paris" }],
            ["get_weather", { city: "Rome" }],
            ["get_time", {}],
          ]);
          expect(new Set(message.tool_calls?.map((call) => call.id)).size).toBe(3);
        });

        it("contains JSON that matches a JSON schema", async () => {
          const { message } = await read(provider, "schema", stream);
          expect(JSON.parse(message.content ?? "")).toEqual({ city: "Paris", days: 3 });
        });

        it("contains reasoning next to the text, and a finish reason", async () => {
          const { message, finish } = await read(provider, "reasoning", stream);
          expect(message).toMatchObject({ content: "42", reasoning_content: "Let me think." });
          expect(finish).toBe("stop");
        });

        it("ends the output at the output cap", async () => {
          const { message, finish } = await read(provider, "length", stream);
          expect([message.content, finish]).toEqual(["Hel", "length"]);
        });

        it("reports a refusal", async () => {
          const ending = read(provider, "refusal", stream).then(
            ({ finish }) => finish,
            (error: unknown) => (error instanceof BadRequestError ? "status" : error),
          );
          const expected = provider.refusesBy === "finish" ? "content_filter" : "status";
          expect(await ending).toBe(expected);
        });
      },
    );
  },
);
