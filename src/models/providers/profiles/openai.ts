import { LOWEST_EFFORT_IS_LOW, REASONING_MODELS } from "../../protocols/responses/host-rules.ts";
import { IMAGE_CALL } from "../../protocols/chat/images.ts";
import { MODERATION_CALL } from "../../protocols/chat/moderation.ts";
import { rerankCall } from "../../protocols/chat/rerank.ts";
import { OCR_CALL } from "../../protocols/chat/ocr.ts";
import { SPEECH_CALL } from "../../protocols/chat/speech.ts";
import { transcriptionCall } from "../../protocols/chat/transcription.ts";
import { effortRule, THREE_EFFORTS } from "./effort.ts";
import {
  ALL_FIELDS,
  COMMON_PROFILE,
  EMBEDDING_FIELDS,
  LOGPROB_FIELDS,
  PENALTY_FIELDS,
  SAMPLER_FIELDS,
} from "./fields.ts";
import type { RequiredFields, Profile, FieldRule } from "../../protocols/chat/profile.ts";

/**
 * Drops the fields for which reasoning models return 400 or 403 unless reasoning is off
 * (developers.openai.com, "Using GPT-5"). A 403 would disable the route.
 */
const REASONING_RULES: readonly FieldRule[] = [
  {
    models: REASONING_MODELS,
    fields: [...PENALTY_FIELDS, ...LOGPROB_FIELDS, "logit_bias", "temperature", "top_p"],
    unless: ["reasoning_effort", "none"],
  },
  { models: /^(?:o3|o4-mini)/, fields: ["stop"] },
  // Since GPT-5.1, models don't support "minimal".
  {
    models: LOWEST_EFFORT_IS_LOW,
    fields: ["reasoning_effort"],
    values: { minimal: "low" },
  },
];

/**
 * OpenAI's models from GPT-5.6 on return 400 for function tools unless reasoning is off (error text of the
 * API). Reasoning is on by default.
 */
const FIELDS_WITH_TOOLS: readonly RequiredFields[] = [
  { models: /^gpt-(?:5\.[6-9]|[6-9])/, whenField: "tools", fields: { reasoning_effort: "none" } },
];

const TRANSCRIPTION_CALL = transcriptionCall({
  format: "json",
  canStream: true,
  acceptsPrompt: true,
});

export const OPENAI_HOST_PROFILE: Profile = {
  ...COMMON_PROFILE,
  chatFields: new Set([
    ...ALL_FIELDS,
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "verbosity",
  ]),
  embeddingFields: EMBEDDING_FIELDS,
  chatExtras: { service_tier: "default" }, // `auto` would use our project's tier
  takesTokens: true,
  rules: REASONING_RULES,
  requiredFields: FIELDS_WITH_TOOLS,
  capField: "max_completion_tokens",
  streamOptions: { include_usage: true, include_obfuscation: false },
  acceptsDeveloperRole: true,
  speaksResponses: true,
  calls: { moderation: MODERATION_CALL, image: IMAGE_CALL, transcription: TRANSCRIPTION_CALL },
};

export const GENERIC_PROFILE: Profile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...ALL_FIELDS, ...SAMPLER_FIELDS]),
  embeddingFields: EMBEDDING_FIELDS,
  returnedFields: ["reasoning_content", "reasoning_details", "extra_content"],
  calls: {
    rerank: rerankCall("top_n"),
    moderation: MODERATION_CALL,
    image: IMAGE_CALL,
    transcription: TRANSCRIPTION_CALL,
    speech: SPEECH_CALL,
    ocr: OCR_CALL,
  },
};

/** Local servers, which support the efforts none, low, medium and high. */
export const LOCAL_PROFILE: Profile = {
  ...GENERIC_PROFILE,
  rules: [effortRule(null, THREE_EFFORTS)],
};

/** The llama.cpp server. It reports the usage of only one choice. */
export const LLAMA_CPP_PROFILE: Profile = { ...LOCAL_PROFILE, supportsOneChoice: true };

export const OLLAMA_PROFILE: Profile = {
  ...LOCAL_PROFILE,
  returnedFields: ["reasoning", "extra_content"],
};
