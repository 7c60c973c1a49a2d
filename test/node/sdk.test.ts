import OpenAI, { APIError, AuthenticationError, BadRequestError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startOpenAiMock } from "../fixtures/openai-mock.ts";
import { makeOrganization } from "./support/organization.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
let mock: Awaited<ReturnType<typeof startOpenAiMock>>;
let client: OpenAI;
let key: string;

beforeAll(async () => {
  mock = await startOpenAiMock();
  regions = await startTwoRegions({
    bindings: {
      PROVIDERS: JSON.stringify([
        { id: "local", base_url: mock.url, profile: "generic", regions: ["eu", "us"] },
      ]),
      MODELS: JSON.stringify([
        {
          id: "local/tools",
          kind: "chat",
          context: 128_000,
          max_output: 4096,
          abilities: ["tools", "vision"],
          price: { input: 1_000_000, output: 2_000_000 },
          routes: [{ provider: "local", upstream_id: "tools-echo" }],
        },
      ]),
      ALIASES: JSON.stringify({ smart: "sandbox/echo", "embeddings/cheapest": "sandbox/embed" }),
    },
  });
  ({ key } = await organization());
  client = sdk(key);
});
afterAll(async () => {
  await regions.stop();
  await mock.close();
});

const sdk = (apiKey: string, baseURL = regions.eu.baseUrl): OpenAI =>
  new OpenAI({ apiKey, baseURL, maxRetries: 0 });
const organization = (
  options: Parameters<typeof makeOrganization>[2] = {},
): ReturnType<typeof makeOrganization> =>
  makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, options);
const hello = [{ role: "user" as const, content: "Hello from the SDK" }];

/** The error that a call ends with. */
async function errorOf(call: Promise<unknown>): Promise<APIError> {
  const outcome = await call.then(
    () => null,
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(APIError);
  return outcome as APIError;
}

describe("the official SDK", () => {
  it("completes a chat with an alias and gets the model's actual name", async () => {
    const answer = await client.chat.completions.create({ model: "smart", messages: hello });
    expect(answer.choices[0]?.message).toMatchObject({
      role: "assistant",
      content: hello[0]?.content,
    });
    expect(answer.model).toBe("sandbox/echo");
    expect(answer.usage?.total_tokens).toBe(
      (answer.usage?.prompt_tokens ?? 0) + (answer.usage?.completion_tokens ?? 0),
    );
  });

  it("streams without usage by default", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox/echo",
      messages: hello,
      stream: true,
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(
      hello[0]?.content,
    );
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
    expect(chunks.some((chunk) => "usage" in chunk)).toBe(false);
    expect(chunks.at(-1)?.choices[0]).toMatchObject({ delta: {}, finish_reason: "stop" });
  });

  it("streams with usage and cost once, in the last chunk, without choices", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox/echo",
      messages: hello,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    const withUsage = chunks.filter((chunk) => chunk.usage);
    expect(withUsage).toEqual([chunks.at(-1)]);
    expect(chunks.at(-1)).toMatchObject({ choices: [] });
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
    const usage = chunks.at(-1)?.usage as unknown as Record<string, number>;
    expect(usage["cost_micro"]).toBe(
      (usage["prompt_tokens"] ?? 0) + 2 * (usage["completion_tokens"] ?? 0),
    );
  });

  it("reads a stream with its .stream() helper", async () => {
    const final = await client.chat.completions
      .stream({ model: "sandbox/echo", messages: hello })
      .finalChatCompletion();
    expect(final.choices[0]?.message.content).toBe(hello[0]?.content);
  });

  it("gets a provider's tool calls, as JSON and streamed", async () => {
    const tools = [
      {
        type: "function" as const,
        function: { name: "get_weather", parameters: { type: "object", properties: {} } },
      },
    ];
    const request = { model: "local/tools", messages: hello, tools };
    const answer = await client.chat.completions.create(request);
    expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
    const call = answer.choices[0]?.message.tool_calls?.[0];
    expect(call).toMatchObject({ type: "function", function: { name: "get_weather" } });
    expect(mock.requests.at(-1)?.json).toMatchObject({ model: "tools-echo", tools });
    const streamed = await client.chat.completions.stream(request).finalChatCompletion();
    expect(streamed.choices[0]?.message.tool_calls?.[0]).toMatchObject({
      function: { name: "get_weather" },
    });
  });

  it("embeds in base64 by default, and as floats on request", async () => {
    const request = { model: "embeddings/cheapest", input: ["near words", "far away"] };
    const decoded = await client.embeddings.create(request);
    const plain = await client.embeddings.create({ ...request, encoding_format: "float" });
    expect(decoded.data.map((item) => item.index)).toEqual([0, 1]);
    for (const [i, item] of decoded.data.entries()) {
      const floats = plain.data[i]?.embedding ?? [];
      expect(item.embedding.length).toBe(floats.length);
      const apart = item.embedding.map((value, j) => Math.abs(value - (floats[j] ?? NaN)));
      expect(Math.max(...apart)).toBeLessThan(1e-6);
      expect(Math.hypot(...floats)).toBeCloseTo(1, 4);
    }
    expect(decoded.model).toBe("sandbox/embed");
  });

  it("lists models and retrieves one with an encoded or raw slash", async () => {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toContain("sandbox/echo");
    expect(ids).toContain("embeddings/cheapest");
    expect(new Set(ids).size).toBe(ids.length);
    expect((await client.models.retrieve("sandbox/echo")).id).toBe("sandbox/echo");
    const raw = await fetch(`${regions.eu.baseUrl}/models/sandbox/echo`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(await raw.json()).toMatchObject({ id: "sandbox/echo", object: "model" });
  });
});

describe("errors in the official SDK", () => {
  it("contain the parameter for a 400", async () => {
    const call = client.chat.completions.create({
      model: "sandbox/echo",
      messages: hello,
      temperature: 3,
    });
    const error = await errorOf(call);
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({
      status: 400,
      param: "temperature",
      type: "invalid_request_error",
    });
    expect(error.requestID).toMatch(/^req_[0-9A-Za-z]{24}$/);
  });

  it("contain 401 for a key that was never issued", async () => {
    const error = await errorOf(sdk("svc_sk_eu_live_nonsense").models.list());
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ status: 401, type: "invalid_api_key" });
  });

  it("contain available and required credits for a 402, without a retry", async () => {
    const poor = await organization({ credits: 10 });
    const client402 = new OpenAI({ apiKey: poor.key, baseURL: regions.eu.baseUrl });
    const error = await errorOf(
      client402.chat.completions.create({ model: "sandbox/echo", messages: hello }),
    );
    expect(error).toMatchObject({ status: 402, type: "insufficient_balance" });
    const { balance_micro, required_micro } = error.error as Record<string, number>;
    expect(balance_micro).toBe(10);
    expect(Number.isInteger(required_micro)).toBe(true);
    expect(required_micro).toBeGreaterThan(10);
  });

  it("contain 404 for an unknown model", async () => {
    const call = client.chat.completions.create({ model: "no/such", messages: hello });
    expect(await errorOf(call)).toMatchObject({ status: 404, code: "model_not_found" });
  });

  it("contain the seconds to wait for a 429 of the key's limit per minute", async () => {
    const limited = await organization({ rpmLimit: 1 });
    const client429 = sdk(limited.key);
    await client429.models.list();
    const error = await errorOf(client429.models.list());
    expect(error).toMatchObject({ status: 429, type: "rate_limit_exceeded" });
    const { retry_after } = error.error as Record<string, number>;
    expect(String(retry_after)).toBe(error.headers?.get("retry-after"));
  });

  it("contain 502 without a charge if the provider fails", async () => {
    const { key: fresh } = await organization();
    const before = await balance(fresh);
    const call = sdk(fresh).chat.completions.create({
      model: "sandbox/status-500",
      messages: hello,
    });
    expect(await errorOf(call)).toMatchObject({ status: 502, type: "upstream_error" });
    expect(await balance(fresh)).toBe(before);
  });

  it("contain 403 for a regional key in the other region", async () => {
    const error = await errorOf(sdk(key, regions.us.baseUrl).models.list());
    expect(error).toMatchObject({ status: 403, type: "region_mismatch" });
  });
});

async function balance(apiKey: string): Promise<number> {
  const response = await fetch(`${regions.eu.baseUrl}/balance`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  const body = (await response.json()) as { credits_micro: number };
  return body.credits_micro;
}
