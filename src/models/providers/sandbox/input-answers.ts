import { NO_USAGE } from "../../../shared/usage.ts";
import type { UnitCounts } from "../../../shared/usage.ts";
import type { InputKind } from "../../../shared/kinds.ts";
import type {
  ProviderCallOf,
  JsonObject,
  ProviderResult,
  StreamEvent,
} from "../../core/provider.ts";
import { streamOfEvents } from "../../core/http-provider.ts";
import { codePoints } from "../../core/speech.ts";
import { transcriptEvents } from "../../core/transcript-events.ts";
import { sandboxEmbeddings } from "./embeddings.ts";
import { sandboxImages } from "./images.ts";

/** A method's type, because the answer of each kind accepts only calls of the kind. */
export type SandboxAnswer<K extends InputKind> = {
  answer(call: ProviderCallOf<K>): ProviderResult;
}["answer"];

export const SANDBOX_INPUT_ANSWERS: { readonly [K in InputKind]: SandboxAnswer<K> } = {
  embeddings: sandboxEmbeddings,
  rerank: ranked,
  moderation: moderated,
  image: sandboxImages,
  transcription: transcribed,
  speech: spoken,
  ocr: readPages,
};

const DOCUMENTS_PER_UNIT = 100;

function ranked({ body }: ProviderCallOf<"rerank">): ProviderResult {
  const wanted = wordsIn(body.query);
  const results = body.documents.map((text, index) => {
    const words = wordsIn(text);
    const found = [...wanted].filter((word) => words.has(word)).length;
    return { index, relevance_score: wanted.size === 0 ? 0 : found / wanted.size };
  });
  const sorted = results.toSorted((a, b) => b.relevance_score - a.relevance_score);
  const units = Math.ceil(body.documents.length / DOCUMENTS_PER_UNIT);
  return answered({ results: sorted.slice(0, body.top_n) }, { search_unit: units });
}

function moderated({ body: { input } }: ProviderCallOf<"moderation">): ProviderResult {
  const inputs = [input].flat();
  const flags = inputs.map((one) => {
    const part = typeof one === "string" ? { text: one } : one;
    return "text" in part && wordsIn(part.text).has("violence");
  });
  const each = typeof inputs[0] === "string" ? flags : [flags.includes(true)];
  const results = each.map((flagged) => ({
    flagged,
    categories: { violence: flagged },
    category_scores: { violence: flagged ? 1 : 0 },
  }));
  return answered({ results }, {});
}

const BYTES_PER_SECOND = 1000;

/** Returns a transcript. A thousand bytes count as a second. */
function transcribed({ body: { file }, stream }: ProviderCallOf<"transcription">): ProviderResult {
  const body = { text: `This is the audio of ${file.filename}.` };
  const usage = { ...NO_USAGE, second: Math.ceil(file.bytes.length / BYTES_PER_SECOND) };
  if (!stream) return { kind: "json", body, usage };
  return { kind: "stream", events: streamOfEvents(transcriptEvents({ body, usage })) };
}

function spoken({ body: { input } }: ProviderCallOf<"speech">): ProviderResult {
  const bytes = new TextEncoder().encode(input);
  const half = Math.ceil(bytes.length / 2);
  const audio = [bytes.slice(0, half), bytes.slice(half)].filter(({ length }) => length > 0);
  const events: StreamEvent[] = [
    ...audio.map((one) => ({ kind: "audio", bytes: one }) as const),
    { kind: "usage", usage: { ...NO_USAGE, character: codePoints(input) } },
    { kind: "end" },
  ];
  return { kind: "stream", events: streamOfEvents(events) };
}

function readPages({ body: { pages } }: ProviderCallOf<"ocr">): ProviderResult {
  const blank = { images: [], dimensions: null };
  const read = pages.map((index) => ({ index, markdown: `# Page ${index}`, ...blank }));
  return answered({ pages: read, doc_size_bytes: null }, { page: pages.length });
}

function answered(body: JsonObject, counts: UnitCounts): ProviderResult {
  return { kind: "json", body, usage: { ...NO_USAGE, ...counts } };
}

function wordsIn(text: string): ReadonlySet<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
}
