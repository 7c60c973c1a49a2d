import { NINE_CHARACTER_ID } from "../../core/tool-call-id.ts";
import { XAI_IMAGE_CALL } from "../../protocols/chat/images.ts";
import { effortRule, THREE_EFFORTS } from "./effort.ts";
import {
  COMMON_PROFILE,
  CORE_FIELDS,
  EMBEDDING_FIELDS,
  LOGPROB_FIELDS,
  PENALTY_FIELDS,
  USUAL_FIELDS,
} from "./fields.ts";
import { MODERATION_CALL } from "../../protocols/chat/moderation.ts";
import { rerankCall } from "../../protocols/chat/rerank.ts";
import { OCR_CALL } from "../../protocols/chat/ocr.ts";
import { MISTRAL_SPEECH_CALL } from "../../protocols/chat/speech.ts";
import { transcriptionCall } from "../../protocols/chat/transcription.ts";
import type { Profile } from "../../protocols/chat/profile.ts";

const MISTRAL_REASONING_MODELS =
  /small-(?:2603|latest)|medium-(?:3[.-]5|2604|latest)|large-4|magistral|glm/;

/** Mistral. It returns 422 for unknown fields (docs.mistral.ai, OpenAPI). */
export const MISTRAL_PROFILE: Profile = {
  ...COMMON_PROFILE,
  chatFields: new Set([
    ...CORE_FIELDS,
    ...PENALTY_FIELDS,
    "n",
    "parallel_tool_calls",
    "prompt_cache_key",
    "seed",
  ]),
  embeddingFields: EMBEDDING_FIELDS,
  nameByField: { seed: "random_seed", dimensions: "output_dimension" },
  rules: [
    { fields: ["tool_choice"], values: { required: "any" } },
    // Mistral's reasoning models support only `none` and `high`. Its other models reject the field.
    effortRule(MISTRAL_REASONING_MODELS, {
      minimal: "none",
      low: "high",
      medium: "high",
      xhigh: "high",
      max: "high",
    }),
    effortRule(null),
  ],
  streamOptions: null,
  plainStyle: {
    toolIds: NINE_CHARACTER_ID,
    // Not empty, because mistral-common rejects an assistant message that has neither content nor
    // calls.
    bridgeText: "Done.",
    reasoning: { as: "thinking", models: MISTRAL_REASONING_MODELS },
  },
  textsMax: 32,
  calls: {
    moderation: MODERATION_CALL,
    transcription: transcriptionCall({ canStream: true }),
    speech: MISTRAL_SPEECH_CALL,
    ocr: OCR_CALL,
  },
};

/** DeepSeek, with the efforts of its guide "Thinking Mode". It thinks by default. */
export const DEEPSEEK_PROFILE: Profile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...CORE_FIELDS, ...PENALTY_FIELDS, ...LOGPROB_FIELDS]),
  rules: [
    effortRule(null, {
      none: { thinking: { type: "disabled" } },
      minimal: "low",
      medium: "high",
      xhigh: "high",
    }),
  ],
  // After tool calls, DeepSeek V4 requires its earlier reasoning in every turn. R1 rejects earlier
  // reasoning.
  plainStyle: {
    keepsNames: true,
    reasoning: { as: "reasoning_content", models: /deepseek-v4/, always: true },
  },
  supportsOneChoice: true,
};

/** xAI. Reasoning models reject stops and penalties. Completion tokens exclude reasoning. */
export const XAI_PROFILE: Profile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...USUAL_FIELDS, "n", "prompt_cache_key"]),
  cacheHeader: "x-grok-conv-id",
  rules: [
    {
      models: /^grok-(?:[4-9]|3-mini|code)(?!.*non-reasoning)/,
      fields: [...PENALTY_FIELDS, "stop"],
    },
    effortRule(/^grok-4\.20(?:-\d{4})?-(?:non-)?reasoning$/),
    effortRule(/^grok-4\.[67]/, { minimal: "low", max: "xhigh" }),
    effortRule(null, THREE_EFFORTS),
  ],
  capField: "max_completion_tokens",
  plainStyle: { keepsNames: true },
  usageShape: { apart: true },
  calls: { image: XAI_IMAGE_CALL },
};

/** Voyage, for embeddings and reranking. Its own field `input_type` is "query" or "document". */
export const VOYAGE_PROFILE: Profile = {
  ...COMMON_PROFILE,
  embeddingFields: new Set([...EMBEDDING_FIELDS, "input_type"]),
  nameByField: { dimensions: "output_dimension" },
  rules: [{ fields: ["encoding_format"], values: { float: null } }],
  // Makes Voyage reject a text that is too long, as OpenAI does, instead of truncating it.
  embeddingExtras: { truncation: false },
  textsMax: 1000,
  calls: { rerank: rerankCall("top_k") },
};

export const JINA_PROFILE: Profile = { ...COMMON_PROFILE, calls: { rerank: rerankCall("top_n") } };
