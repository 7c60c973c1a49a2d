import { beforeAll, describe, expect, it } from "vitest";
import type * as z from "zod";
import { balanceOf, embed, errorOf, openAccount } from "./client.ts";
import { mockUpstream } from "./upstream.ts";
import { base64Embeddings, floatEmbeddings } from "./response-schemas.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

type Floats = z.infer<typeof floatEmbeddings>;

async function floatsOf(fields: Record<string, unknown> = {}): Promise<Floats> {
  const response = await embed(key, fields);
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  expect(response.headers.get("content-type")).toBe("application/json");
  return floatEmbeddings.parse(JSON.parse(text));
}

function decoded(base64: string): number[] {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

describe("POST /v1/embeddings", () => {
  it("returns a vector of numbers in OpenAI's format for a single text", async () => {
    const answer = await floatsOf();
    expect(answer.data).toHaveLength(1);
    expect(answer.model).toBe("sandbox/embed");
    expect(answer.usage.total_tokens).toBe(answer.usage.prompt_tokens);
    expect(Math.hypot(...(answer.data[0]?.embedding ?? []))).toBeCloseTo(1, 5);
  });

  it("returns the actual model name for the alias embeddings/cheapest", async () => {
    expect((await floatsOf({ model: "embeddings/cheapest" })).model).toBe("sandbox/embed");
  });

  it("returns the vector in base64 as little-endian float32 values if requested", async () => {
    const plain = await floatsOf({ encoding_format: "float" });
    const response = await embed(key, { encoding_format: "base64" });
    const packed = base64Embeddings.parse(await response.json());
    const floats = decoded(packed.data[0]?.embedding ?? "");
    expect(floats).toEqual(plain.data[0]?.embedding.map((value) => Math.fround(value)));
  });

  it("returns vectors with the requested number of dimensions", async () => {
    for (const dimensions of [1, 8, 512]) {
      expect((await floatsOf({ dimensions })).data[0]?.embedding).toHaveLength(dimensions);
    }
  });

  it("returns a batch's vectors in order with their index, equal to the vectors of separate requests", async () => {
    const input = ["first words", "other text", "first words"];
    const batch = await floatsOf({ input });
    expect(batch.data.map((item) => item.index)).toEqual([0, 1, 2]);
    const alone = await Promise.all(input.map((text) => floatsOf({ input: text })));
    expect(batch.data.map((item) => item.embedding)).toEqual(
      alone.map((answer) => answer.data[0]?.embedding),
    );
  });

  it("charges a batch of 2,048 inputs in base64 once, for the total of their tokens", async () => {
    const before = await balanceOf(key);
    const input = Array.from({ length: 2048 }, (_, i) => `text number ${i}`);
    const response = await embed(key, { input, dimensions: 4, encoding_format: "base64" });
    const cost = Number(response.headers.get("x-cost-micro"));
    const answer = base64Embeddings.parse(await response.json());
    expect(answer.data.map((item) => item.index)).toEqual(input.map((_, i) => i));
    expect(cost).toBe(answer.usage.prompt_tokens);
    expect(before - (await balanceOf(key))).toBe(cost);
  });

  it("treats null as a missing value, and ignores unknown fields", async () => {
    const fields = { encoding_format: null, dimensions: null, user: null, truncate: "END", x: {} };
    expect((await floatsOf(fields)).data).toHaveLength(1);
  });

  it("rounds a charge at $0.02 per million tokens up to one micro-credit, and forwards only embedding fields", async () => {
    const { calls, bindings } = mockUpstream(() =>
      Response.json({
        object: "list",
        data: [{ object: "embedding", index: 0, embedding: [0.5, -0.5] }],
        model: "theirs",
        usage: { prompt_tokens: 3, total_tokens: 3 },
      }),
    );
    const fields = {
      model: "mock/embed",
      user: "customer",
      encoding_format: "base64",
      api_base: "x",
    };
    const response = await embed(key, fields, { bindings });
    expect(response.headers.get("x-cost-micro")).toBe("1");
    const answer = base64Embeddings.parse(await response.json());
    expect(answer.model).toBe("mock/embed");
    expect(decoded(answer.data[0]?.embedding ?? "")).toEqual([0.5, -0.5]);
    expect(Object.keys(calls[0]?.body ?? {}).toSorted()).toEqual([
      "encoding_format",
      "input",
      "model",
    ]);
  });
});

describe("a rejected POST /v1/embeddings", () => {
  it("returns 402 with whole micro-credits as amounts", async () => {
    const { key: poor } = await openAccount({ credits: 1 });
    const error = await errorOf(await embed(poor), 402);
    expect(error).toMatchObject({ type: "insufficient_balance", balance_micro: 1 });
    expect(error.required_micro).toBeGreaterThan(1);
  });

  it.each(["no/such", "sandbox/echo", "smart"])("returns 404 for the model %s", async (model) => {
    const error = await errorOf(await embed(key, { model }), 404);
    expect(error).toMatchObject({ code: "model_not_found", param: "model" });
  });

  it.each([
    ["too few vectors", []],
    ["an invalid vector", [{ index: 0, embedding: "!!" }]],
    ["a null in a vector", [{ index: 0, embedding: [0.1, null] }]],
  ])("returns 502 for %s, without a charge", async (_, data) => {
    const usage = { prompt_tokens: 3, total_tokens: 3 };
    const { bindings } = mockUpstream(() => Response.json({ object: "list", data, usage }));
    const before = await balanceOf(key);
    await errorOf(await embed(key, { model: "mock/embed" }, { bindings }), 502);
    expect(await balanceOf(key)).toBe(before);
  });
});
