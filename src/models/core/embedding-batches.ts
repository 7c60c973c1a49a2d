import { decodeBase64, toBase64 } from "./data-url.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import { NO_USAGE, sumUsage } from "../../shared/usage.ts";
import { listOf } from "./json-value.ts";
import type { Usage } from "../../shared/usage.ts";
import { createResponseTooLargeFailure } from "./response-size.ts";
import { addUsageToFailure } from "./frame-reader.ts";
import type {
  ProviderResponse,
  EmbeddingsCall,
  JsonObject,
  ProviderResult,
  ProviderFailure,
} from "./provider.ts";
import { discardUsageWithoutPrompt } from "./openai-usage.ts";

const BYTES_PER_FLOAT = 4;

/** Returns OpenAI's list of the embeddings `data` of a provider's response. */
export function encodeEmbeddings(data: unknown, encoding: "float" | "base64"): readonly object[] {
  return listOf(data).map((embedding, index) => ({
    object: "embedding",
    index,
    embedding: encodeEmbedding(embedding, encoding),
  }));
}

function encodeEmbedding(embedding: unknown, encoding: "float" | "base64"): unknown {
  if (Array.isArray(embedding)) {
    return encoding === "float" ? embedding : floatsToBase64(embedding as number[]);
  }
  if (typeof embedding === "string" && encoding === "float") return base64ToFloats(embedding);
  return embedding;
}

/** Encodes a vector as OpenAI's base64: little-endian float32. */
export function floatsToBase64(floats: readonly number[]): string {
  const bytes = new Uint8Array(floats.length * BYTES_PER_FLOAT);
  const view = new DataView(bytes.buffer);
  for (const [index, value] of floats.entries()) {
    view.setFloat32(index * BYTES_PER_FLOAT, value, true);
  }
  return toBase64(bytes);
}

/** Reports whether a text is base64 of whole float32 values, without decoding it. */
export function isBase64Floats(base64: string): boolean {
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return false;
  const padding = base64.length - base64.replace(/=+$/, "").length;
  return ((base64.length / 4) * 3 - padding) % BYTES_PER_FLOAT === 0;
}

export function base64ToFloats(base64: string): number[] | null {
  const binary = decodeBase64(base64);
  if (binary === null || binary.length % BYTES_PER_FLOAT !== 0) return null;
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const floats: number[] = [];
  for (let at = 0; at < bytes.length; at += BYTES_PER_FLOAT) floats.push(view.getFloat32(at, true));
  return floats;
}

export function isVector(raw: unknown): raw is number[] {
  return Array.isArray(raw) && raw.length > 0 && raw.every((value) => Number.isFinite(value));
}

const BATCHES_AT_ONCE = 4;
const TEXTS_AT_ONCE = 6;
const VECTOR_VALUES_MAX = (20 * 1024 * 1024) / 8;

function requireTexts({ body: { input } }: EmbeddingsCall): readonly string[] | ProviderFailure {
  const texts: readonly unknown[] = Array.isArray(input) ? input : [input];
  if (texts.every((text) => typeof text === "string")) return texts;
  return {
    kind: "refused",
    reason: "token_input",
    message: "This model only supports text. Send 'input' as a string or a list of strings.",
    param: "input",
  };
}

export function getInputTexts({ body: { input } }: EmbeddingsCall): readonly string[] {
  return [input].flat().filter((text) => typeof text === "string");
}

type EmbeddingSlices = {
  readonly texts: readonly string[];
  readonly size: number;
  readonly send: (call: EmbeddingsCall) => Promise<ProviderResult>;
};

/**
 * Sends `size` texts per request, a few requests at a time, and joins the results. The usage is
 * null if any result lacks usage.
 */
export async function embedInBatches(
  call: EmbeddingsCall,
  size: number,
  send: EmbeddingSlices["send"],
): Promise<ProviderResult> {
  const texts = requireTexts(call);
  if ("kind" in texts) return { kind: "failure", failure: texts };
  const parts: { body: JsonObject; usage: Usage | null }[] = [];
  for (const answer of await sendSlices(call, { texts, size, send })) {
    if (answer.kind === "failure") return answer;
    if (answer.kind === "stream") return badAnswerResult();
    parts.push(answer);
  }
  const vectors = parts.flatMap((part) => listOf(part.body["data"]));
  return {
    kind: "json",
    ...createEmbeddingList(vectors, sumUsage(parts.map((part) => part.usage))),
  };
}

export function createBatchEmbedder(size: number) {
  return (call: EmbeddingsCall, send: EmbeddingSlices["send"]): Promise<ProviderResult> =>
    embedInBatches(call, size, send);
}

async function sendSlices(
  call: EmbeddingsCall,
  { texts, size, send }: EmbeddingSlices,
): Promise<readonly ProviderResult[]> {
  const slices: EmbeddingsCall[] = [];
  for (let at = 0; at < texts.length; at += size) {
    slices.push({ ...call, body: { ...call.body, input: texts.slice(at, at + size) } });
  }
  const failures: ProviderFailure[] = [];
  let values = 0;
  const limit = Math.min(size === 1 ? TEXTS_AT_ONCE : BATCHES_AT_ONCE, slices.length);
  const answers = await mapConcurrently(limit, slices, async (slice) => {
    if (failures.length > 0) return badAnswerResult();
    let answer = await send(slice);
    // A single batch isn't retried here, because the caller can retry it on another route.
    if (slices.length > 1 && shouldRetry(answer, call)) answer = await send(slice);
    if (answer.kind === "failure") failures.push(answer.failure);
    else if (answer.kind === "json") values += countValues(answer.body);
    if (values > VECTOR_VALUES_MAX) failures.push(createResponseTooLargeFailure(call));
    return answer;
  });
  const [failure] = failures;
  return failure === undefined
    ? answers
    : [{ kind: "failure", failure: addFinishedUsage(failure, answers) }];
}

function addFinishedUsage(
  failure: ProviderFailure,
  answers: readonly ProviderResult[],
): ProviderFailure {
  const usages = answers.flatMap((answer) => (answer.kind === "json" ? [answer.usage] : []));
  return addUsageToFailure(failure, {
    usage: usages.length === 0 ? null : sumUsage(usages),
    text: "",
  });
}

function countValues(body: JsonObject): number {
  let values = 0;
  for (const embedding of listOf(body["data"])) {
    if (Array.isArray(embedding)) values += embedding.length;
    else if (typeof embedding === "string") values += (embedding.length * 3) / 16;
  }
  return values;
}

function shouldRetry(answer: ProviderResult, { signal }: EmbeddingsCall): boolean {
  if (answer.kind !== "failure" || signal.aborted) return false;
  return answer.failure.kind === "retry" && answer.failure.fault !== "request";
}

/** Returns a response with embeddings in the order of the input: vectors, or vectors as base64. */
export function createEmbeddingList(
  data: readonly unknown[],
  usage: Usage | null,
): ProviderResponse {
  return { body: { data }, usage: discardUsageWithoutPrompt(usage) };
}

/** Returns a response, or null unless there is a valid vector for each text. */
export function toEmbeddingList(
  vectors: readonly unknown[],
  call: EmbeddingsCall,
  inputTokens: number | null,
): ProviderResponse | null {
  if (vectors.length !== getInputTexts(call).length || !vectors.every(isVector)) return null;
  return createEmbeddingList(
    vectors,
    inputTokens === null ? null : { ...NO_USAGE, input: inputTokens },
  );
}

function badAnswerResult(): ProviderResult {
  return { kind: "failure", failure: { kind: "retry", reason: "bad_answer" } };
}
