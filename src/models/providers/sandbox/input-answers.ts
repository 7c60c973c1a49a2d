import { NO_USAGE } from "../../../shared/usage.ts";
import type { UnitCounts } from "../../../shared/usage.ts";
import type { CallKindWithoutOutput } from "../../../shared/kinds.ts";
import type {
  ProviderCallOfKind,
  JsonObject,
  ProviderResult,
  StreamEvent,
  EmbeddingsCall,
  ImageCall,
} from "../../core/provider.ts";
import { createSingleBatchStream } from "../../core/http-provider.ts";
import { countCodePoints } from "../../core/speech.ts";
import { toTranscriptionEvents } from "../../core/media-reader.ts";
import { distributedHash32 } from "../../../shared/hash.ts";
import { countTokens } from "./tokens.ts";
import { estimateTokens } from "../../../shared/tokens.ts";

/**
 * Simulates the response to a call. A method's type, because methods accept narrower parameters.
 */
export type SandboxInputResponse<K extends CallKindWithoutOutput> = {
  answer(call: ProviderCallOfKind<K>): ProviderResult;
}["answer"];

export const SANDBOX_INPUT_RESPONSES: {
  readonly [K in CallKindWithoutOutput]: SandboxInputResponse<K>;
} = {
  embeddings: sandboxEmbeddings,
  rerank: rerankAnswer,
  moderation: moderationAnswer,
  image: sandboxImages,
  transcription: transcriptionAnswer,
  speech: speechAnswer,
  ocr: ocrAnswer,
};

const DOCUMENTS_PER_UNIT = 100;

function rerankAnswer({ body }: ProviderCallOfKind<"rerank">): ProviderResult {
  const queryWords = wordsIn(body.query);
  const results = body.documents.map((text, index) => {
    const words = wordsIn(text);
    const found = [...queryWords].filter((word) => words.has(word)).length;
    return { index, relevance_score: queryWords.size === 0 ? 0 : found / queryWords.size };
  });
  const sorted = results.toSorted((a, b) => b.relevance_score - a.relevance_score);
  const units = Math.ceil(body.documents.length / DOCUMENTS_PER_UNIT);
  return jsonAnswer({ results: sorted.slice(0, body.top_n) }, { search_unit: units });
}

function moderationAnswer({ body: { input } }: ProviderCallOfKind<"moderation">): ProviderResult {
  const inputs = [input].flat();
  const flags = inputs.map((one) => {
    const part = typeof one === "string" ? { text: one } : one;
    return "text" in part && wordsIn(part.text).has("violence");
  });
  const flagPerResult = typeof inputs[0] === "string" ? flags : [flags.includes(true)];
  const results = flagPerResult.map((flagged) => ({
    flagged,
    categories: { violence: flagged },
    category_scores: { violence: flagged ? 1 : 0 },
  }));
  return jsonAnswer({ results }, {});
}

const BYTES_PER_SECOND = 1000;

function transcriptionAnswer({
  body: { file },
  stream,
}: ProviderCallOfKind<"transcription">): ProviderResult {
  const body = { text: `This is the audio of ${file.filename}.` };
  const usage = { ...NO_USAGE, second: Math.ceil(file.bytes.length / BYTES_PER_SECOND) };
  if (!stream) return { kind: "json", body, usage };
  return {
    kind: "stream",
    events: createSingleBatchStream(toTranscriptionEvents({ body, usage })),
  };
}

function speechAnswer({ body: { input } }: ProviderCallOfKind<"speech">): ProviderResult {
  const bytes = new TextEncoder().encode(input);
  const half = Math.ceil(bytes.length / 2);
  const audio = [bytes.slice(0, half), bytes.slice(half)].filter(({ length }) => length > 0);
  const events: StreamEvent[] = [
    ...audio.map((one) => ({ kind: "audio", bytes: one }) as const),
    { kind: "usage", usage: { ...NO_USAGE, character: countCodePoints(input) } },
    { kind: "end" },
  ];
  return { kind: "stream", events: createSingleBatchStream(events) };
}

function ocrAnswer({ body: { pages } }: ProviderCallOfKind<"ocr">): ProviderResult {
  const blank = { images: [], dimensions: null };
  const read = pages.map((index) => ({ index, markdown: `# Page ${index}`, ...blank }));
  return jsonAnswer({ pages: read, doc_size_bytes: null }, { page: pages.length });
}

function jsonAnswer(body: JsonObject, counts: UnitCounts): ProviderResult {
  return { kind: "json", body, usage: { ...NO_USAGE, ...counts } };
}

function wordsIn(text: string): ReadonlySet<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
}

const DIMENSIONS_DEFAULT = 256;
const DIMENSIONS_MAX = 1024;
const COORDINATES_PER_WORD = 8;
/** Rounds to 8 decimals: as exact as a float32 near 1, and shorter than a double. */
const ROUNDING_FACTOR = 1e8;

function sandboxEmbeddings({ body }: EmbeddingsCall): ProviderResult {
  const { input, dimensions = DIMENSIONS_DEFAULT } = body;
  if (dimensions > DIMENSIONS_MAX) {
    const message = `'dimensions' must be a whole number from 1 to ${DIMENSIONS_MAX} for this model.`;
    const detail = { message, param: "dimensions", code: null, reason: "400" };
    return { kind: "failure", failure: { kind: "refused", ...detail } };
  }
  const texts = (Array.isArray(input) ? input : [input]).map(String);
  const data = texts.map((text) => vectorOf(embeddedWords(text), dimensions));
  const tokens = texts.reduce((sum, text) => sum + countTokens(text), 0);
  return { kind: "json", body: { data }, usage: { ...NO_USAGE, input: tokens } };
}

function embeddedWords(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text.trim()];
}

function vectorOf(words: readonly string[], dimensions: number): readonly number[] {
  const sums = Array.from({ length: dimensions }, () => 0);
  for (const word of words) {
    for (let coordinate = 0; coordinate < COORDINATES_PER_WORD; coordinate++) {
      // The coordinate isn't the hash's seed, because it could then cancel out the word's first
      // letter.
      const hash = distributedHash32(`${coordinate} ${word}`);
      const at = (hash >>> 1) % dimensions;
      sums[at] = (sums[at] ?? 0) + ((hash & 1) === 0 ? 1 : -1);
    }
  }
  let norm = Math.hypot(...sums);
  if (norm === 0) {
    // The text is empty, or all coordinates canceled each other out.
    sums[distributedHash32(words.join(" ")) % dimensions] = 1;
    norm = 1;
  }
  return sums.map((sum) => Math.round((sum / norm) * ROUNDING_FACTOR) / ROUNDING_FACTOR + 0);
}

const PIXEL_PNG_BASE64 =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const TOKENS_PER_SOURCE_IMAGE = 1024;

function sandboxImages({ body }: ImageCall): ProviderResult {
  const { n, partial_images: previews = 0, prompt, edit } = body;
  const { size = "1024x1024", quality = "low" } = body;
  const usage = {
    ...NO_USAGE,
    input: Math.ceil(estimateTokens(prompt)),
    image: n,
    ...(edit !== undefined && { input_image_token: edit.images.length * TOKENS_PER_SOURCE_IMAGE }),
  };
  const events: StreamEvent[] = [
    ...Array.from({ length: previews }, (_, at) => previewEvents(at)).flat(),
    ...Array.from({ length: n }, (_, at) => imageEvent(at)),
    nativeEvent({ background: "opaque", output_format: "png", quality, size }),
    { kind: "usage", usage },
    { kind: "end" },
  ];
  return { kind: "stream", events: createSingleBatchStream(events) };
}

function previewEvents(at: number): StreamEvent[] {
  const picture: StreamEvent = { kind: "piece", index: 0, text: PIXEL_PNG_BASE64, isPartial: true };
  return [picture, nativeEvent({ partial_image_index: at })];
}

function imageEvent(at: number): StreamEvent {
  return { kind: "piece", index: at + 1, text: PIXEL_PNG_BASE64, isPartial: false };
}

function nativeEvent(event: Extract<StreamEvent, { kind: "native" }>["event"]): StreamEvent {
  return { kind: "native", event, text: "", finish: null };
}
