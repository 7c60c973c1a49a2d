import { expect, it, vi } from "vitest";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { answerTo } from "./adapter-kit.ts";

function host(name: string) {
  const profile = PROVIDER_HOST_PROFILES.get(name);
  if (profile === undefined) throw new Error(`no profile ${name}`);
  return createOpenAiCompatibleProvider({
    id: name,
    baseUrl: "https://host.test/v1",
    profile,
    secret: "k",
  });
}

/** Returns Voyage's response: `embedding` before `index`, and only a total. */
function vectors(from: number, count: number, usage: object = { total_tokens: count }) {
  const data = Array.from({ length: count }, (_, index) => {
    return { object: "embedding", embedding: [from + index, 0.5], index };
  });
  return {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ object: "list", data: data.toReversed(), model: "voyage-4", usage }),
  };
}

const embed = (body: JsonObject) => ({ kind: "embeddings" as const, upstreamId: "voyage-4", body });

it("the OpenAI-compatible adapter sends Voyage's field names to Voyage, without truncation or unsupported formats", async () => {
  const body = {
    input: "a",
    dimensions: 256,
    encoding_format: "float",
    input_type: "query",
    user: "u",
  };
  const { answer, requests } = await answerTo(host("voyage"), embed(body), vectors(0, 1));
  expect(requests[0]?.json).toEqual({
    model: "voyage-4",
    input: ["a"],
    output_dimension: 256,
    input_type: "query",
    truncation: false,
  });
  expect(answer).toEqual({
    kind: "json",
    usage: { input: 1, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 },
    body: { data: [[0, 0.5]] },
  });
  vi.restoreAllMocks();
  const coded = embed({ input: "a", encoding_format: "base64" });
  const second = await answerTo(host("voyage"), coded, vectors(0, 1));
  expect(second.requests[0]?.json["encoding_format"]).toBe("base64");
});

it("the OpenAI-compatible adapter rejects token IDs before sending if the provider accepts only texts", async () => {
  for (const name of ["voyage", "mistral"]) {
    for (const input of [
      [1, 2],
      [[1], [2]],
    ]) {
      const { answer, requests } = await answerTo(host(name), embed({ input }), vectors(0, 1));
      expect(answer).toMatchObject({ failure: { kind: "refused", param: "input" } });
      expect(requests).toEqual([]);
      vi.restoreAllMocks();
    }
  }
  const { requests } = await answerTo(host("openai"), embed({ input: [1, 2] }), vectors(0, 1));
  expect(requests[0]?.json["input"]).toEqual([1, 2]);
});
