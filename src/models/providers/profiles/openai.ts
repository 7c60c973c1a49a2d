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
 * Reasoning models return 400 or 403 for these fields (developers.openai.com, "Using GPT-5"),
 * unless reasoning is off. A 403 would disable the route.
 */
const REASONING_RULES: readonly Rule[] = [
  {
    models: REASONING_MODELS,
    fields: [...PENALTIES, ...LOGPROBS, "logit_bias", "temperature", "top_p"],
    unless: ["reasoning_effort", "none"],
  },
  { models: /^(?:o3|o4-mini)/, fields: ["stop"] },
  // Since 5.1, the lowest is none, then low.
  {
    models: LOW_IS_LEAST,
    fields: ["reasoning_effort"],
    values: { minimal: "low" },
  },
];

/**
 * Function tools are a 400 from 5.6 on unless reasoning is off, and it is on by default (the API's
 * own error text).
 */
const WITH_TOOLS: readonly Implied[] = [
  { models: /^gpt-(?:5\.[6-9]|[6-9])/, beside: "tools", fields: { reasoning_effort: "none" } },
];

const TRANSCRIPTIONS = transcribing({ format: "json", streams: true, prompts: true });

/** OpenAI itself. Azure has the same API with another header. */
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

/** The common fields of Ollama, vLLM, llama.cpp and proxies. */
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

/** Local servers: low, medium, high or none. */
export const LOCAL: Profile = { ...GENERIC, rules: [effort(null, THREE_EFFORTS)] };

/** The llama.cpp server. It reports the usage of only one choice. */
export const LLAMA_CPP: Profile = { ...LOCAL, oneChoice: true };

/** Ollama, which has another name for reasoning. */
export const OLLAMA: Profile = { ...LOCAL, returned: ["reasoning", "extra_content"] };
