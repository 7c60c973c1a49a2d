import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, errorOf, openAccount, send } from "./client.ts";
import { mockUpstream, upstreamCompletion } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const PATH = "/v1/completions";
const complete = (fields: object, bindings?: Env): Promise<Response> =>
  send(PATH, {
    key,
    body: { model: "sandbox/echo", prompt: "say this", ...fields },
    ...(bindings !== undefined && { bindings }),
  });

describe("POST /v1/completions", () => {
  it("returns OpenAI's text completion format, and charges the price of a chat with one message", async () => {
    const before = await balanceOf(key);
    const response = await complete({ max_tokens: 100 });
    const cost = Number(response.headers.get("x-cost-micro"));
    const body = await response.json<Record<string, unknown>>();
    expect(body).toEqual({
      id: `cmpl-${response.headers.get("x-request-id")?.slice("req_".length)}`,
      object: "text_completion",
      created: expect.any(Number) as number,
      model: "sandbox/echo",
      provider: "sandbox",
      choices: [{ text: "say this", index: 0, logprobs: null, finish_reason: "stop" }],
      usage: expect.objectContaining({ total_tokens: expect.any(Number) as number }) as object,
    });
    expect(cost).toBeGreaterThan(0);
    expect(await balanceOf(key)).toBe(before - cost);
  });

  it("calls the provider's chat API with a default cap of 16 tokens, without the user field", async () => {
    const upstream = mockUpstream(() => upstreamCompletion());
    const fields = { model: "mock/chat", prompt: ["one"], stop: ["x"], user: "u", suffix: null };
    expect((await complete(fields, upstream.bindings)).status).toBe(200);
    expect(upstream.calls[0]?.body).toMatchObject({
      messages: [{ role: "user", content: "one" }],
      stop: ["x"],
    });
    const { max_tokens, max_completion_tokens } = upstream.calls[0]?.body ?? {};
    expect(max_tokens ?? max_completion_tokens).toBe(16);
    expect(upstream.calls[0]?.body).not.toHaveProperty("prompt");
  });

  it("streams each choice's text with index and finish reason, then usage, cost and [DONE]", async () => {
    const options = {
      max_tokens: 100,
      n: 2,
      stream: true,
      stream_options: { include_usage: true },
    };
    const response = await complete(options);
    const events = (await response.text()).split("\n\n").filter((event) => event !== "");
    expect(events.at(-1)).toBe("data: [DONE]");
    const chunks = events
      .slice(0, -1)
      .map((event) => JSON.parse(event.slice("data: ".length)) as Chunk);
    for (const chunk of chunks) expect(chunk.object).toBe("text_completion");
    const texts = ["", ""];
    for (const { text, index } of chunks.flatMap(({ choices }) => choices)) texts[index] += text;
    expect(texts).toEqual(["say this", "say this"]);
    const ends = chunks.flatMap(({ choices }) => choices.filter((one) => one.finish_reason));
    expect(ends.map(({ index, finish_reason }) => [index, finish_reason])).toEqual([
      [0, "stop"],
      [1, "stop"],
    ]);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { cost_micro: expect.any(Number) } });
  });
});

const PROMPTS = ["say this", "and three words", "z"];

describe("POST /v1/completions with several prompts", () => {
  it("returns n choices per prompt in order, at the price of separate requests", async () => {
    const fields = { max_tokens: 100, n: 2 };
    const each = await Promise.all(PROMPTS.map(async (prompt) => complete({ ...fields, prompt })));
    const costs = each.map((one) => Number(one.headers.get("x-cost-micro")));
    const before = await balanceOf(key);
    const response = await complete({ ...fields, prompt: PROMPTS });
    const cost = Number(response.headers.get("x-cost-micro"));
    const { choices, usage } = await response.json<Completion>();
    expect(choices.map(({ index, text }) => [index, text])).toEqual(
      PROMPTS.flatMap((text, at) => [
        [2 * at, text],
        [2 * at + 1, text],
      ]),
    );
    expect(cost).toBe(costs.reduce((sum, one) => sum + one, 0));
    expect(cost).toBe(usage.prompt_tokens + 2 * usage.completion_tokens);
    expect(await balanceOf(key)).toBe(before - cost);
    const receipt = `/v1/generations/${response.headers.get("x-request-id")}`;
    expect(await (await send(receipt, { key })).json()).toMatchObject({ cost_micro: cost });
  });

  it("calls the provider once per prompt, and returns 402 if the balance doesn't cover all prompts", async () => {
    const { calls, bindings } = mockUpstream(() => upstreamCompletion());
    expect((await complete({ model: "mock/chat", prompt: PROMPTS }, bindings)).status).toBe(200);
    expect(calls.map(({ body }) => body["messages"])).toEqual(
      PROMPTS.map((content) => [{ role: "user", content }]),
    );
    const { key: poor } = await openAccount({ credits: 3000 });
    const of = (prompt: readonly string[]) =>
      send(PATH, { key: poor, body: { model: "sandbox/echo", prompt, max_tokens: 1000 } });
    expect((await of(["x"])).status).toBe(200);
    await errorOf(await of(Array.from({ length: 20 }, () => "x".repeat(500))), 402);
  });

  it.each([
    ["the request's fault", 400, 400, true],
    ["the provider's fault", 500, 502, false],
  ])(
    "charges for a failed prompt only if the request caused the failure: %s",
    async (_, upstream, status, isCharged) => {
      const { bindings } = mockUpstream(({ body }) =>
        JSON.stringify(body).includes("words")
          ? Response.json({ error: { message: "No." } }, { status: upstream })
          : upstreamCompletion(),
      );
      const before = await balanceOf(key);
      const response = await complete({ model: "mock/chat", prompt: PROMPTS }, bindings);
      const cost = Number(response.headers.get("x-cost-micro") ?? 0);
      const { cost_micro: reportedCost } = await errorOf(response, status);
      expect([cost > 0, response.headers.get("x-should-retry")]).toEqual([
        isCharged,
        isCharged ? "false" : null,
      ]);
      expect(await balanceOf(key)).toBe(before - cost);
      expect(reportedCost ?? 0).toBe(cost);
    },
  );
});

type Completion = {
  readonly choices: readonly { readonly index: number; readonly text: string }[];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
};
type Chunk = {
  readonly object: string;
  readonly choices: readonly {
    readonly text: string;
    readonly index: number;
    readonly finish_reason: string | null;
  }[];
};

describe("an invalid body of POST /v1/completions", () => {
  it("returns 404 for an embeddings model", async () => {
    expect((await errorOf(await complete({ model: "sandbox/embed" }), 404)).param).toBe("model");
  });
});
