import { LOW_IS_LEAST, REASONING_MODELS } from "../../protocols/responses/host-rules.ts";
import { DRAWING } from "../../protocols/chat/images.ts";
import { MODERATIONS } from "../../protocols/chat/moderation.ts";
import { ranking } from "../../protocols/chat/rerank.ts";
import { READING } from "../../protocols/chat/ocr.ts";
import { SPEAKING } from "../../protocols/chat/speech.ts";
import { transcribing } from "../../protocols/chat/transcription.ts";
import { effort, THREE_EFFORTS } from "./effort.ts";
import { ALL_FIELDS, COMMON, EMBEDDING_FIELDS, LOGPROBS, PENALTIES, SAMPLERS } from "./fields.ts";
import type { Implied, Profile, Rule } from "../../protocols/chat/profile.ts";

/**
 * Fields for which reasoning models return 400 or 403 unless reasoning is off
 * (developers.openai.com, "Using GPT-5"). A 403 would disable the route.
 */
const REASONING_RULES: readonly Rule[] = [
  {
    models: REASONING_MODELS,
    fields: [...PENALTIES, ...LOGPROBS, "logit_bias", "temperature", "top_p"],
    unless: ["reasoning_effort", "none"],
  },
  { models: /^(?:o3|o4-mini)/, fields: ["stop"] },
  // Since 5.1, the lowest efforts are none and low.
  {
    models: LOW_IS_LEAST,
    fields: ["reasoning_effort"],
    values: { minimal: "low" },
  },
];

/**
 * OpenAI returns 400 for function tools from 5.6 on, unless reasoning is off (the API's own error
 * text). It is on by default.
 */
const WITH_TOOLS: readonly Implied[] = [
  { models: /^gpt-(?:5\.[6-9]|[6-9])/, beside: "tools", fields: { reasoning_effort: "none" } },
];

const TRANSCRIPTIONS = transcribing({ format: "json", streams: true, prompts: true });

export const OPENAI: Profile = {
  ...COMMON,
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
  implied: WITH_TOOLS,
  capField: "max_completion_tokens",
  streamOptions: { include_usage: true, include_obfuscation: false },
  developerRole: true,
  speaksResponses: true,
  calls: { moderation: MODERATIONS, image: DRAWING, transcription: TRANSCRIPTIONS },
};

export const GENERIC: Profile = {
  ...COMMON,
  chatFields: new Set([...ALL_FIELDS, ...SAMPLERS]),
  embeddingFields: EMBEDDING_FIELDS,
  returned: ["reasoning_content", "reasoning_details", "extra_content"],
  calls: {
    rerank: ranking("top_n"),
    moderation: MODERATIONS,
    image: DRAWING,
    transcription: TRANSCRIPTIONS,
    speech: SPEAKING,
    ocr: READING,
  },
};

/** Local servers, with the efforts low, medium, high and none. */
export const LOCAL: Profile = { ...GENERIC, rules: [effort(null, THREE_EFFORTS)] };

/** The llama.cpp server. With several choices, it reports the usage of only one. */
export const LLAMA_CPP: Profile = { ...LOCAL, oneChoice: true };

/** Ollama, which has its own field name for reasoning. */
export const OLLAMA: Profile = { ...LOCAL, returned: ["reasoning", "extra_content"] };
