import type { Usage } from "../lib/usage.ts";
import type { Answer } from "./http-provider.ts";
import type { JsonObject, ProviderAnswer, ProviderCall, ProviderFailure } from "./provider.ts";
import { wireUsage } from "./wire-usage.ts";

/** How many requests of one call are under way at a time. */
const AT_ONCE = 4;

/** The texts of an embeddings request, or the refusal for a provider that takes no tokens. */
export function textsOf(call: ProviderCall): readonly string[] | ProviderFailure {
  const { input } = call.body;
  const texts: unknown[] = Array.isArray(input) ? input : [input];
  if (texts.every((text) => typeof text === "string")) return texts;
  return {
    kind: "refused",
    reason: "token_input",
    message: "This model takes text only: send 'input' as a string or a list of strings.",
    param: "input",
  };
}

/**
 * An embeddings call of any size for a provider that takes at most `size` texts a request: in slices,
 * a few at a time, put together in order. The first failure is the call's; usage is null when one
 * slice has none.
 */
export async function inBatches(
  call: ProviderCall,
  size: number,
  send: (call: ProviderCall, texts: readonly string[]) => Promise<ProviderAnswer>,
): Promise<ProviderAnswer> {
  const texts = textsOf(call);
  if ("kind" in texts) return { kind: "failure", failure: texts };
  const parts: { body: JsonObject; usage: Usage | null }[] = [];
  for (let start = 0; start < texts.length; start += size * AT_ONCE) {
    const slices: (readonly string[])[] = [];
    for (let at = start; at < Math.min(texts.length, start + size * AT_ONCE); at += size) {
      slices.push(texts.slice(at, at + size));
    }
    // oxlint-disable-next-line no-await-in-loop -- a bounded number of requests at a time
    const answers = await Promise.all(slices.map((slice) => send(call, slice)));
    for (const answer of answers) {
      if (answer.kind === "failure") return answer;
      if (answer.kind === "stream") return badAnswer();
      parts.push(answer);
    }
  }
  const vectors = parts.flatMap((part) => part.body["data"] as readonly JsonObject[]);
  return { kind: "json", ...embeddingList(vectors, summed(parts.map((part) => part.usage))) };
}

/** An embedding list of these vectors (numbers or base64), in order; null usage is estimated. */
export function embeddingList(vectors: readonly unknown[], usage: Usage | null): Answer {
  const data = vectors.map((vector, index) => {
    const embedding = isItem(vector) ? vector.embedding : vector;
    return { object: "embedding", index, embedding };
  });
  const body = { object: "list", data };
  return {
    body: usage === null ? body : { ...body, usage: wireUsage(usage, "embeddings") },
    usage,
  };
}

function isItem(vector: unknown): vector is { readonly embedding: unknown } {
  return typeof vector === "object" && vector !== null && "embedding" in vector;
}

function summed(usages: readonly (Usage | null)[]): Usage | null {
  let input = 0;
  for (const usage of usages) {
    if (usage === null) return null;
    input += usage.input;
  }
  return { input, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
}

function badAnswer(): ProviderAnswer {
  return { kind: "failure", failure: { kind: "retry", reason: "bad_answer" } };
}
