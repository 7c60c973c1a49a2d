import * as z from "zod";
import { errorObject } from "./error-records.ts";
import { count, record } from "./fields.ts";
import { costs } from "./records.ts";

const rank = z.strictObject({
  index: count.describe("The document's position in the request."),
  relevance_score: z.number(),
  document: z.strictObject({ text: z.string() }).optional(),
});
const durationUsage = z.strictObject({ type: z.literal("duration"), seconds: count, ...costs });
const mistralTokens = { prompt_tokens: count, completion_tokens: count, total_tokens: count };
const mistralHeard = {
  model: z.string(),
  text: z.string(),
  language: z.null(),
  segments: z.array(z.never()),
  usage: z.strictObject({ prompt_audio_seconds: count, ...mistralTokens, ...costs }),
};
export const transcript = z.union([
  record("Transcript", { text: z.string(), usage: durationUsage }),
  record("MistralTranscript", mistralHeard),
]);
export const transcriptEvent = z.union([
  z.strictObject({ type: z.literal("transcript.text.delta"), delta: z.string() }),
  z.strictObject({
    type: z.literal("transcript.text.done"),
    text: z.string(),
    usage: durationUsage,
  }),
  z.strictObject({ type: z.literal("transcription.text.delta"), text: z.string() }),
  z.strictObject({ type: z.literal("transcription.done"), ...mistralHeard }),
  z.strictObject({ error: errorObject }),
]);
const characters = count.describe("The billed characters.");
const mistralSpoken = z.strictObject({ ...mistralTokens, characters, ...costs });
export const audio = z.union([
  z.string().meta({ format: "binary" }).describe("In `response_format`."),
  record("MistralSpeech", { audio_data: z.string(), usage: mistralSpoken }),
]);
export const speechEvent = z.union([
  z.strictObject({
    type: z.literal("speech.audio.delta"),
    audio: z.string().describe("Bytes of the file in base64."),
  }),
  z.strictObject({
    type: z.literal("speech.audio.done"),
    usage: z.strictObject({
      input_tokens: count,
      output_tokens: count,
      total_tokens: count,
      characters,
      ...costs,
    }),
  }),
  z.strictObject({ type: z.literal("speech.audio.delta"), audio_data: z.string() }),
  z.strictObject({ type: z.literal("speech.audio.done"), usage: mistralSpoken }),
  z.strictObject({ error: errorObject }),
]);
const page = z.looseObject({ markdown: z.string() });
export const readDocument = record("ReadDocument", {
  pages: z.array(page).describe("In the provider's format."),
  model: z.string(),
  usage_info: z.strictObject({ pages_processed: count, doc_size_bytes: count.nullable() }),
  usage: z.strictObject({ pages: count.describe("The billed pages."), ...costs }),
});
export const moderated = record("Moderated", {
  id: z.string(),
  model: z.string(),
  results: z
    .array(
      z.looseObject({
        flagged: z.boolean(),
        categories: z.record(z.string(), z.boolean()),
        category_scores: z.record(z.string(), z.number()),
      }),
    )
    .describe("One for each text, or one for all parts. The categories are the provider's."),
  usage: z.strictObject(costs),
});
export const ranked = record("Ranked", {
  id: z.string(),
  model: z.string(),
  results: z.array(rank).describe("Best first."),
  meta: z.strictObject({
    api_version: z.strictObject({ version: z.string() }),
    billed_units: z.strictObject({
      search_units: count.optional(),
      input_tokens: count.optional(),
    }),
  }),
  usage: z.strictObject({ total_tokens: count, ...costs }),
});

const tokens = z.strictObject({ text_tokens: count, image_tokens: count });
const imageUsage = z.strictObject({
  input_tokens: count,
  input_tokens_details: tokens,
  output_tokens: count,
  output_tokens_details: tokens,
  total_tokens: count,
  ...costs,
});
const made = {
  background: z.string().optional(),
  output_format: z.string().optional(),
  quality: z.string().optional(),
  size: z.string().optional().describe("The actual size."),
  usage: imageUsage,
};
const picture = z.string().describe("The picture in base64.");
export const images = record("Images", {
  created: count.describe("Unix seconds."),
  data: z.array(z.strictObject({ b64_json: picture })),
  ...made,
});
export const imageEvent = z.looseObject({
  type: z.enum([
    "image_generation.partial_image",
    "image_generation.completed",
    "image_edit.partial_image",
    "image_edit.completed",
    "error",
  ]),
  b64_json: picture.optional(),
  partial_image_index: count.optional(),
  usage: imageUsage.optional(),
});
