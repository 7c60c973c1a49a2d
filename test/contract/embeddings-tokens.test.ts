import { env } from "cloudflare:workers";
import { getEncoding } from "js-tiktoken";
import { beforeAll, expect, it, vi } from "vitest";
import { balanceOf, errorOf, openAccount, send } from "./client.ts";
import { mockUpstream, upstreamError } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

/** Tokens of cl100k_base, as LangChain sends them by default. */
const encoding = getEncoding("cl100k_base");
const TEXTS = [
  "A text.",
  "Zwei Sätze. Noch einer – mit Strich.",
  "漢字と絵文字 👩‍👩‍👧",
  "  spaces\n\tand tabs  ",
  "\ufeffa mark",
];

const vectors = (count: number) =>
  Response.json({
    object: "list",
    data: Array.from({ length: count }, (_, index) => ({
      object: "embedding",
      index,
      embedding: [0.5],
    })),
    usage: { prompt_tokens: 9, total_tokens: 9 },
  });

/** Returns the request to a provider whose model accepts no token IDs. */
async function sentFor(
  input: unknown,
): Promise<{ status: number; input: unknown; response: Response }> {
  const count = Array.isArray(input) && Array.isArray(input[0]) ? input.length : 1;
  const { calls, bindings } = mockUpstream(() => vectors(count));
  const response = await send("/v1/embeddings", {
    key,
    body: { model: "mock/embed", input },
    bindings,
  });
  return { status: response.status, input: calls[0]?.body["input"], response };
}

/** Returns the sandbox's response to an input. */
async function embedded(input: unknown): Promise<{ data: unknown[]; usage: unknown }> {
  const response = await send("/v1/embeddings", { key, body: { model: "sandbox/embed", input } });
  return response.json();
}

it("POST /v1/embeddings decodes lists of token IDs to texts, and sends the texts to the provider in order", async () => {
  const { status, input } = await sentFor(TEXTS.map((text) => encoding.encode(text)));
  expect([status, input]).toEqual([200, TEXTS]);
});

it("the sandbox embeds each list of token IDs as the decoded text", async () => {
  const { data, usage } = await embedded(TEXTS);
  expect(data).toHaveLength(TEXTS.length);
  const ids = TEXTS.map((text) => encoding.encode(text));
  expect(await embedded(ids)).toMatchObject({ data, usage });
  expect((await embedded(ids[0])).data).toEqual(data.slice(0, 1));
});

it("POST /v1/embeddings treats a single list of token IDs as one text", async () => {
  expect(await sentFor(encoding.encode("One text."))).toMatchObject({
    status: 200,
    input: "One text.",
  });
});

it("POST /v1/embeddings accepts tokens that end in the middle of a character", async () => {
  const ids = encoding.encode("漢");
  expect(ids.length).toBeGreaterThan(1);
  expect(await sentFor([ids.slice(0, 1)])).toMatchObject({ status: 200, input: ["\ufffd"] });
});

it.each([
  [[1, 2, 100_256], "input[2]"],
  [[[1], [2, 9_999_999]], "input[1][1]"],
])(
  "POST /v1/embeddings returns 400 for an invalid token ID, and holds nothing: %j",
  async (input, param) => {
    const before = await balanceOf(key);
    const { status, response, input: sent } = await sentFor(input);
    expect([status, sent]).toEqual([400, undefined]);
    expect(await errorOf(response, 400)).toMatchObject({ param });
    expect(await balanceOf(key)).toBe(before);
  },
);

it("POST /v1/embeddings returns 400 for tokens that decode to more than 8 MiB", async () => {
  const spaces = encoding.encode(" ".repeat(80));
  expect(spaces).toHaveLength(1);
  const long = Array.from({ length: 2000 }, () => Array.from({ length: 60 }, () => spaces[0]));
  const { status, response } = await sentFor(long);
  expect(status).toBe(400);
  expect(await errorOf(response, 400)).toMatchObject({ param: "input" });
});

it("POST /v1/embeddings returns 503 until the token table can be read, and then caches the table", async () => {
  const real = (env as { ASSETS?: Fetcher }).ASSETS;
  const broken = {
    fetch: vi.fn<() => Promise<Response>>(() => Promise.resolve(new Response("", { status: 500 }))),
  };
  const { bindings } = mockUpstream(() => vectors(1));
  const assets = bindings as { ASSETS?: unknown };
  const embedWith = async (binding: unknown): Promise<number> => {
    assets.ASSETS = binding;
    const body = { model: "mock/embed", input: [[1]] };
    return (await send("/v1/embeddings", { key, body, bindings })).status;
  };
  expect([await embedWith(broken), await embedWith(real), await embedWith(broken)]).toEqual([
    503, 200, 200,
  ]);
  expect(broken.fetch).toHaveBeenCalledTimes(1);
});

it.each([
  ["/v1/embeddings", { model: "mock/embed", input: "x" }, "input"],
  ["/v1/rerank", { model: "cohere/rerank-v4.0-pro", query: "x", documents: ["y"] }, "documents"],
] as const)(
  "the endpoint %s names the client's input field if the provider rejects the input as too long",
  async (path, body, param) => {
    const message =
      "Input length (160062 tokens) exceeds the maximum allowed length (32762 tokens).";
    const { bindings } = mockUpstream(() => upstreamError(400, { message }));
    const both = { ...bindings, COHERE_API_KEY: "k", RESIDENCY: "relaxed" } as unknown as Env;
    const error = await errorOf(await send(path, { key, body, bindings: both }), 400);
    expect(error).toMatchObject({ code: "context_length_exceeded", param });
  },
);

it("POST /v1/embeddings returns 400 for token IDs if the Worker's static assets lack the token table", async () => {
  const { bindings } = mockUpstream(() => vectors(1));
  delete (bindings as { ASSETS?: unknown }).ASSETS;
  const body = { model: "mock/embed", input: [[1]] };
  const response = await send("/v1/embeddings", { key, body, bindings });
  expect(await errorOf(response, 400)).toMatchObject({ param: "input" });
});
