import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { OpenRouter } from "@openrouter/sdk";
import { generateText, streamText, stepCountIs, tool } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { EXPECTED_CONVERSATION, TURNS, Weather } from "./conversation.ts";
import { CLAUDE, GPT, authorGateway } from "./author-gateway.ts";

const at = await authorGateway();
const MODELS = ["sandbox/agent", GPT, CLAUDE];
const dollars = async () => (await at.balance()) / 1_000_000;

describe("OpenRouter's SDK for TypeScript", () => {
  const client = () => new OpenRouter({ apiKey: at.key, serverURL: at.baseUrl });
  type Message = Parameters<
    ReturnType<typeof client>["chat"]["send"]
  >[0]["chatRequest"]["messages"][number];

  type Reasoned = {
    readonly reasoning?: string | null | undefined;
    readonly reasoningDetails?:
      | readonly { readonly type: string; readonly text?: string | null | undefined }[]
      | undefined;
  };

  /** Sends a chat and returns its message and cost. */
  async function send(model: string, messages: Message[], streamed: boolean) {
    const { name, description, parameters } = new Weather();
    const chatRequest = {
      model,
      messages,
      tools: [{ type: "function" as const, function: { name, description, parameters } }],
      provider: { allowFallbacks: true, maxPrice: { prompt: "1000", completion: "1000" } },
      sessionId: "a session",
    };
    if (!streamed) {
      const answer = await client().chat.send({ chatRequest });
      if (!("choices" in answer)) throw new Error("a stream");
      const { content = "", toolCalls = [] } = answer.choices[0]?.message ?? {};
      return { content, toolCalls, cost: answer.usage?.cost, id: answer.id };
    }
    const stream = await client().chat.send({ chatRequest: { ...chatRequest, stream: true } });
    if ("choices" in stream) throw new Error("no stream");
    let content = "";
    let cost: number | null | undefined;
    let id = "";
    const calls: { id: string; name: string; arguments: string }[] = [];
    for await (const chunk of stream) {
      id = chunk.id;
      cost = chunk.usage?.cost ?? cost;
      const { delta } = chunk.choices[0] ?? {};
      content += delta?.content ?? "";
      for (const { index, id: callId = "", function: called } of delta?.toolCalls ?? []) {
        calls[index] ??= { id: callId, name: called?.name ?? "", arguments: "" };
        calls[index].arguments += called?.arguments ?? "";
      }
    }
    const toolCalls = calls.map(({ id: callId, ...called }) => {
      return { id: callId, type: "function" as const, function: called };
    });
    return { content, toolCalls, cost, id };
  }

  it.each(MODELS.flatMap((model) => [false, true].map((streamed) => ({ model, streamed }))))(
    "completes a conversation with $model, streamed: $streamed",
    async ({ model, streamed }) => {
      const weather = new Weather();
      const messages: Message[] = [];
      const texts: unknown[] = [];
      for (const content of TURNS) {
        messages.push({ role: "user", content });
        for (;;) {
          const answer = await send(model, messages, streamed);
          const { content: text, toolCalls } = answer;
          const called = toolCalls.length > 0 && { toolCalls };
          messages.push({ role: "assistant", content: text as string, ...called });
          for (const { id, function: call } of toolCalls) {
            const { city } = JSON.parse(call.arguments) as { city: string };
            messages.push({ role: "tool", toolCallId: id, content: weather.call(city) });
          }
          if (toolCalls.length > 0) continue;
          texts.push(text);
          break;
        }
      }
      expect({ cities: weather.cities, texts }).toEqual(EXPECTED_CONVERSATION);
    },
  );

  it.each([false, true])("reads a request's cost and receipt, streamed: %s", async (streamed) => {
    const before = await at.balance();
    const { cost, id } = await send("sandbox/echo", [{ role: "user", content: "Hello" }], streamed);
    const charged = before - (await at.balance());
    expect(charged).toBeGreaterThan(0);
    expect(cost).toBe(charged / 1_000_000);
    const { data } = await client().generations.getGeneration({ id });
    expect(data).toMatchObject({ totalCost: cost, providerName: "sandbox", streamed });
  });

  it("reads the balance, the key, the models and the models' routes", async () => {
    const { data: credits } = await client().credits.getCredits();
    expect(credits.totalCredits - credits.totalUsage).toBeCloseTo(await dollars(), 6);
    const { data: key } = await client().apiKeys.getCurrentKeyMetadata();
    expect(key.usage).toBeCloseTo(credits.totalUsage, 6);
    const pages = await client().models.list();
    const ids: string[] = [];
    for await (const page of pages) ids.push(...page.result.data.map(({ id }) => id));
    expect(ids).toEqual(expect.arrayContaining(["sandbox/echo", "smart"]));
    const { data: one } = await client().endpoints.list({ author: "sandbox", slug: "echo" });
    expect(one.endpoints).toMatchObject([{ tag: "sandbox", latencyLast30m: null }]);
  });

  it.each([false, true])("reads reasoning and reasoning details, streamed: %s", async (stream) => {
    const messages: Message[] = [{ role: "user", content: "Hello" }];
    const chatRequest = { model: "sandbox/think", messages, stream };
    const answer = await client().chat.send({ chatRequest });
    const parts: Reasoned[] = [];
    if ("choices" in answer) parts.push(...answer.choices.map(({ message }) => message));
    else for await (const { choices } of answer) parts.push(...choices.map(({ delta }) => delta));
    const reasoning = parts.map((one) => one.reasoning ?? "").join("");
    const details = parts.flatMap(({ reasoningDetails = [] }) => reasoningDetails);
    expect(reasoning).not.toBe("");
    expect(details.map(({ text = "" }) => text ?? "").join("")).toBe(reasoning);
    expect(details.at(-1)?.type).toBe("reasoning.encrypted");
  });

  it("gets an error inside a stream with the error's status", async () => {
    const messages: Message[] = [{ role: "user", content: "Hello" }];
    const chatRequest = { model: "sandbox/error-mid", messages, stream: true as const };
    const chunks = [];
    const answer = await client().chat.send({ chatRequest });
    if ("choices" in answer) throw new Error("no stream");
    for await (const chunk of answer) chunks.push(chunk);
    expect(chunks.at(-1)).toMatchObject({ error: { code: 502 } });
  });

  it("gets an API error in OpenRouter's format", async () => {
    const broke = new OpenRouter({
      apiKey: await at.keyOf({ credits: 1, rpmLimit: 10 }),
      serverURL: at.baseUrl,
      retryConfig: { strategy: "none" },
    });
    const messages: Message[] = [{ role: "user", content: "Hello" }];
    const response = broke.chat.send({ chatRequest: { model: "sandbox/echo", messages } });
    await expect(response).rejects.toMatchObject({
      name: "PaymentRequiredResponseError",
      statusCode: 402,
      error: { code: 402, metadata: { error_type: "insufficient_balance" } },
    });
  });

  it("embeds texts", async () => {
    const requestBody = { model: "sandbox/embed", input: ["one", "two"] };
    const answer = await client().embeddings.generate({ requestBody });
    if (typeof answer === "string") throw new Error(answer);
    expect(answer.data).toHaveLength(2);
    expect(answer.usage?.cost).toBeGreaterThan(0);
  });
});

describe("OpenRouter's provider for the AI SDK", () => {
  const provider = () => createOpenRouter({ apiKey: at.key, baseURL: at.baseUrl });

  it.each(MODELS.flatMap((model) => [false, true].map((streamed) => ({ model, streamed }))))(
    "completes a conversation with $model, streamed: $streamed",
    async ({ model, streamed }) => {
      const weather = new Weather();
      const messages: Parameters<typeof generateText>[0]["messages"] & object = [];
      const texts: string[] = [];
      for (const content of TURNS) {
        messages.push({ role: "user", content });
        const options = {
          model: provider().chat(model),
          messages,
          tools: {
            get_weather: tool({
              description: weather.description,
              inputSchema: z.object({ city: z.string() }),
              execute: ({ city }) => Promise.resolve(weather.call(city)),
            }),
          },
          stopWhen: stepCountIs(5),
          maxRetries: 0,
        };
        const answer = streamed ? streamText(options) : await generateText(options);
        texts.push(await answer.text);
        messages.push(...(await answer.responseMessages));
      }
      expect({ cities: weather.cities, texts }).toEqual(EXPECTED_CONVERSATION);
    },
  );

  it.each([false, true])(
    "reads reasoning and sends the reasoning back, streamed: %s",
    async (streamed) => {
      const options = { model: provider().chat("sandbox/think"), maxRetries: 0 };
      const first = { ...options, prompt: "Hello" };
      const answer = streamed ? streamText(first) : await generateText(first);
      expect(await answer.reasoningText).not.toBe("");
      const user = { role: "user", content: "Hello" } as const;
      const messages = [user, ...(await answer.responseMessages), user];
      expect((await generateText({ ...options, messages })).text).not.toBe("");
    },
  );

  it.each([false, true])("reads cost and provider, streamed: %s", async (streamed) => {
    const before = await at.balance();
    const model = provider().chat("sandbox/echo", {
      usage: { include: true },
      provider: { order: ["sandbox"], allow_fallbacks: false },
      models: ["sandbox/agent"],
    });
    const options = { model, prompt: "Hello", maxRetries: 0 };
    const answer = streamed ? streamText(options) : await generateText(options);
    expect(await answer.text).toContain("Hello");
    const metadata = (await answer.providerMetadata)?.["openrouter"];
    const cost = (before - (await at.balance())) / 1_000_000;
    expect(cost).toBeGreaterThan(0);
    expect(metadata).toMatchObject({ provider: "sandbox", usage: { cost } });
  });
});
