import { expect, it } from "vitest";
import { getProviderLimits } from "../../src/models/catalog/entry.ts";
import { getBedrockEmbeddingAuthor } from "../../src/models/protocols/converse/embeddings.ts";
import {
  createEmbeddingList,
  embedInBatches,
  getInputTexts,
} from "../../src/models/core/embedding-batches.ts";
import { VERTEX_EMBEDDINGS } from "../../src/models/protocols/gemini/embeddings.ts";
import type { ProviderResult, ProviderFailure } from "../../src/models/core/provider.ts";
import { callOf } from "./adapter-kit.ts";

const FINE: ProviderResult = { kind: "json", ...createEmbeddingList([[1]], null) };

/** Returns a call with this number of texts. */
const callFor = (count: number) =>
  callOf({ kind: "embeddings", body: { input: Array.from({ length: count }, () => "a") } });

/**
 * Returns the result of a call in batches, the number of requests, and the maximum of concurrent
 * ones.
 */
async function sliced(
  count: number,
  size: number,
  failures: readonly (ProviderFailure | null)[] = [],
  call = callFor(count),
) {
  const seen = { sent: 0, maxOpen: 0 };
  let open = 0;
  const answer = await embedInBatches(call, size, async (part) => {
    const failure = failures[seen.sent++] ?? null;
    seen.maxOpen = Math.max(seen.maxOpen, ++open);
    await new Promise((resolve) => queueMicrotask(() => resolve(null)));
    open--;
    if (failure !== null) return { kind: "failure", failure };
    return {
      kind: "json",
      ...createEmbeddingList(
        getInputTexts(part).map(() => [1]),
        null,
      ),
    };
  });
  return { ...seen, kind: answer.kind };
}

it("a batch of embeddings runs six requests at a time with one text each, or four with several texts each", async () => {
  expect(await sliced(40, 1)).toEqual({ sent: 40, maxOpen: 6, kind: "json" });
  expect(await sliced(40, 2)).toEqual({ sent: 20, maxOpen: 4, kind: "json" });
  expect(await sliced(3, 1)).toEqual({ sent: 3, maxOpen: 3, kind: "json" });
});

const AGAIN: ProviderFailure = { kind: "retry", reason: "500", again: true };

it("a batch of embeddings retries a failed request once", async () => {
  expect(await sliced(8, 1, [null, AGAIN])).toMatchObject({ sent: 9, kind: "json" });
  const all = await sliced(
    40,
    1,
    Array.from({ length: 99 }, () => AGAIN),
  );
  expect(all).toMatchObject({ sent: 12, kind: "failure" });
});

it.each([
  { kind: "overloaded", reason: "429" },
  { kind: "refused", reason: "400" },
  { kind: "disabled", reason: "401" },
  { kind: "retry", reason: "413", fault: "request" },
] as const)(
  "a batch of embeddings does not retry a request that failed with $reason ($kind)",
  async (failure) => {
    expect(await sliced(40, 1, [failure])).toMatchObject({ sent: 6, kind: "failure" });
  },
);

it("a batch of embeddings doesn't retry its only request, and never retries after the call has ended", async () => {
  expect(await sliced(1, 1, [AGAIN])).toMatchObject({ sent: 1, kind: "failure" });
  const ended = { ...callFor(2), signal: AbortSignal.abort() };
  expect(await sliced(2, 1, [AGAIN, AGAIN], ended)).toMatchObject({ sent: 2, kind: "failure" });
});

it("a batch of embeddings treats a response without vectors as a failure", async () => {
  const events = { next: () => Promise.resolve(null), cancel: () => undefined };
  const answers: ProviderResult[] = [FINE, { kind: "stream", events }];
  const answer = await embedInBatches(callFor(2), 1, () => Promise.resolve(answers.pop() ?? FINE));
  expect(answer).toMatchObject({ kind: "failure", failure: { reason: "bad_answer" } });
});

const boundOf = (provider: string, model: string) =>
  getProviderLimits(provider, { kind: "embeddings", upstreamId: model }).inputs;

it("the catalog limits the number of texts per embedding request if the model accepts one text per call", () => {
  for (const model of ["gemini-embedding-001", "text-embedding-005"]) {
    expect(boundOf("vertex", model), model).toBe(
      VERTEX_EMBEDDINGS.textsMax(model) === 1 ? 128 : undefined,
    );
  }
  for (const model of ["amazon.titan-embed-text-v2:0", "eu.cohere.embed-v4:0"]) {
    const isSingle = getBedrockEmbeddingAuthor(model).textsMax === 1;
    expect(boundOf("bedrock", model), model).toBe(isSingle ? 128 : undefined);
  }
  expect(boundOf("google", "gemini-embedding-001")).toBeUndefined();
  // Rounds of six at 5 seconds each end before the 120 seconds of a response.
  expect(Math.ceil(128 / 6) * 5).toBeLessThan(120);
});

it("a batch of embeddings fails above 20 MB of responses, reports the usage, and sends no more requests", async () => {
  const vector = Array.from({ length: 1_000_000 }, () => 1);
  const usage = { input: 7, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
  let sent = 0;
  const answer = await embedInBatches(callFor(20), 1, () => {
    sent++;
    return Promise.resolve({ kind: "json", ...createEmbeddingList([vector], usage) });
  });
  expect(answer).toMatchObject({
    kind: "failure",
    failure: {
      kind: "refused",
      param: "input",
      message: expect.stringContaining("20 MB") as string,
    },
  });
  const spent = answer.kind === "failure" ? answer.failure.spent : undefined;
  expect(spent?.usage?.input).toBeGreaterThanOrEqual(3 * 7);
  expect(sent).toBeLessThan(20);
});

it("a batch of embeddings reports the usage of completed requests if another request's text is rejected", async () => {
  const refused: ProviderFailure = { kind: "refused", reason: "400", param: "input" };
  const usage = { input: 7, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
  let sent = 0;
  const answer = await embedInBatches(callFor(3), 1, () =>
    Promise.resolve(
      ++sent === 3
        ? { kind: "failure", failure: refused }
        : { kind: "json", ...createEmbeddingList([[1]], usage) },
    ),
  );
  expect(answer).toMatchObject({ failure: { ...refused, spent: { usage: { input: 14 } } } });
});
