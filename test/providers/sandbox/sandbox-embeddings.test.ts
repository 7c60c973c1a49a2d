import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_USAGE } from "../../../src/shared/usage.ts";
import type { JsonObject } from "../../../src/models/core/provider.ts";
import { countTokens } from "../../../src/models/providers/sandbox/tokens.ts";
import { callSandbox } from "./sandbox-call.ts";

async function embed(body: JsonObject) {
  const answer = await callSandbox(body, { kind: "embeddings", upstreamId: "embed" });
  if (answer.kind !== "json") throw new Error(JSON.stringify(answer));
  return { data: answer.body["data"] as number[][], usage: answer.usage };
}

async function vectors(input: unknown, body: JsonObject = {}): Promise<number[][]> {
  return (await embed({ input, ...body })).data;
}

function dot(one: readonly number[] = [], other: readonly number[] = []): number {
  return one.reduce((sum, value, i) => sum + value * (other[i] ?? 0), 0);
}

describe("the sandbox model embed", () => {
  it("returns one vector per input in input order, with usage", async () => {
    const { data, usage } = await embed({ input: ["a", "hello world"] });
    expect(data).toEqual([...(await vectors("a")), ...(await vectors("hello world"))]);
    expect(usage).toEqual({ ...NO_USAGE, input: 3 });
  });

  it("returns reproducible unit vectors of the requested dimension", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.integer({ min: 1, max: 1024 }), async (text, dimensions) => {
        const [vector] = await vectors(text, { dimensions });
        expect(vector).toHaveLength(dimensions);
        expect(dot(vector, vector)).toBeCloseTo(1, 5);
        expect(await vectors([text], { dimensions })).toEqual([vector]);
      }),
      { numRuns: 50, examples: [["", 1024]] },
    );
    expect((await vectors("x"))[0]).toHaveLength(256);
  });

  it("returns similar vectors for texts that share words, whatever the case and order of the words", async () => {
    const [cat, shuffled, kitten, stocks] = await vectors([
      "the cat sat on the mat",
      "On the mat the CAT sat",
      "a cat slept on the mat",
      "quarterly revenue fell below forecasts",
    ]);
    expect(shuffled).toEqual(cat);
    expect(dot(cat, kitten)).toBeGreaterThan(0.5);
    expect(Math.abs(dot(cat, stocks))).toBeLessThan(0.3);
  });

  it("rejects unsupported dimensions with the param", async () => {
    const call = { kind: "embeddings", upstreamId: "embed" } as const;
    expect(await callSandbox({ input: "a", dimensions: 1025 }, call)).toMatchObject({
      kind: "failure",
      failure: { kind: "refused", param: "dimensions", reason: "400" },
    });
  });

  it("counts the tokens of every input", async () => {
    const input = ["one two three", "extraordinarily"];
    const { usage } = await embed({ input });
    expect(usage?.input).toBe(3 + countTokens("extraordinarily"));
  });
});

it.each([
  ["cat", "bat"],
  ["text 4", "text 5"],
  ["a", "b"],
])("the sandbox model embed returns different vectors for %j and %j", async (one, other) => {
  const [first, second] = await vectors([one, other]);
  expect(dot(first, second)).toBeLessThan(0.9);
  const words = await vectors([one.split(" ").at(-1), other.split(" ").at(-1)]);
  expect(dot(words[0], words[1])).toBeLessThan(0.5);
});
