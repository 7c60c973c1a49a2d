import type { FieldRule, HostProfile, RequiredFields } from "../protocols/chat/profile.ts";
import {
  MODELS_WITHOUT_MINIMAL_EFFORT,
  REASONING_MODEL_PATTERN,
} from "../protocols/responses/host-rules.ts";
import {
  IMAGE_PROTOCOL,
  XAI_IMAGE_PROTOCOL,
  MODERATION_PROTOCOL,
  createRerankProtocol,
  OCR_PROTOCOL,
  SPEECH_PROTOCOL,
  MISTRAL_SPEECH_PROTOCOL,
  createTranscriptionProtocol,
} from "../protocols/chat/calls.ts";
import { NINE_CHARACTER_ID_FORMAT } from "../core/tool-calls.ts";
import { BILLED_SECONDS_MIN } from "../core/transcription.ts";

type Values = NonNullable<FieldRule["values"]>;

/** Replacements for efforts, for hosts that accept only `none`, `low`, `medium` and `high`. */
const THREE_EFFORTS: Values = { minimal: "low", xhigh: "high", max: "high" };

/** Like `THREE_EFFORTS`, for models that always reason: `none` becomes `low`. */
const EFFORTS_IF_ALWAYS_REASONING: Values = { ...THREE_EFFORTS, none: "low" };

function effortRule(models: RegExp | null, values?: Values): FieldRule {
  return {
    fields: ["reasoning_effort"],
    ...(models !== null && { models }),
    ...(values !== undefined && { values }),
  };
}

// The fields of OpenAI's CreateChatCompletionRequest (openapi.yaml). Excludes `user` (the
// customer's end user), `store`, `metadata` (which requires `store`), `moderation`, and fields that
// change the price.
const CORE_FIELDS = [
  "messages",
  "reasoning_effort",
  "response_format",
  "stop",
  "temperature",
  "tool_choice",
  "tools",
  "top_p",
];
const PENALTY_FIELDS = ["frequency_penalty", "presence_penalty"];
const LOGPROB_FIELDS = ["logprobs", "top_logprobs"];
const SAMPLER_FIELDS = ["min_p", "repetition_penalty", "top_k"];
const USUAL_FIELDS = [
  ...CORE_FIELDS,
  ...PENALTY_FIELDS,
  ...LOGPROB_FIELDS,
  "parallel_tool_calls",
  "seed",
];
const ALL_FIELDS = [...USUAL_FIELDS, "function_call", "functions", "logit_bias", "n"];
const EMBEDDING_FIELDS: ReadonlySet<string> = new Set(["input", "dimensions", "encoding_format"]);
const NO_FIELDS: ReadonlySet<string> = new Set();

/** The base of all profiles, which supports no kind of request. */
const COMMON_PROFILE: HostProfile = {
  chatFields: NO_FIELDS,
  embeddingFields: NO_FIELDS,
  capField: "max_tokens",
  streamOptions: { include_usage: true },
  acceptsDeveloperRole: false,
};

/**
 * Drops fields for which reasoning models return 400 or 403 unless reasoning is off
 * (developers.openai.com, "Using GPT-5"). A 403 would disable the route.
 */
const REASONING_RULES: readonly FieldRule[] = [
  {
    models: REASONING_MODEL_PATTERN,
    fields: [...PENALTY_FIELDS, ...LOGPROB_FIELDS, "logit_bias", "temperature", "top_p"],
    unless: ["reasoning_effort", "none"],
  },
  { models: /^(?:o3|o4-mini)/, fields: ["stop"] },
  // Since GPT-5.1, models don't support "minimal".
  {
    models: MODELS_WITHOUT_MINIMAL_EFFORT,
    fields: ["reasoning_effort"],
    values: { minimal: "low" },
  },
];

/**
 * OpenAI's models from GPT-5.6 on return 400 for function tools unless reasoning is off. Reasoning
 * is on by default.
 */
const FIELDS_WITH_TOOLS: readonly RequiredFields[] = [
  { models: /^gpt-(?:5\.[6-9]|[6-9])/, whenField: "tools", fields: { reasoning_effort: "none" } },
];

const TRANSCRIPTION_CALL = createTranscriptionProtocol({
  format: "json",
  canStream: true,
  acceptsPrompt: true,
});

export const OPENAI_HOST_PROFILE: HostProfile = {
  ...COMMON_PROFILE,
  chatFields: new Set([
    ...ALL_FIELDS,
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "verbosity",
  ]),
  embeddingFields: EMBEDDING_FIELDS,
  chatExtras: { service_tier: "default" }, // The tier `auto` would use our project's tier.
  takesTokens: true,
  rules: REASONING_RULES,
  requiredFields: FIELDS_WITH_TOOLS,
  capField: "max_completion_tokens",
  streamOptions: { include_usage: true, include_obfuscation: false },
  acceptsDeveloperRole: true,
  speaksResponses: true,
  calls: {
    moderation: MODERATION_PROTOCOL,
    image: IMAGE_PROTOCOL,
    transcription: TRANSCRIPTION_CALL,
  },
};

export const GENERIC_HOST_PROFILE: HostProfile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...ALL_FIELDS, ...SAMPLER_FIELDS]),
  embeddingFields: EMBEDDING_FIELDS,
  returnedFields: ["reasoning_content", "reasoning_details", "extra_content"],
  calls: {
    rerank: createRerankProtocol("top_n"),
    moderation: MODERATION_PROTOCOL,
    image: IMAGE_PROTOCOL,
    transcription: TRANSCRIPTION_CALL,
    speech: SPEECH_PROTOCOL,
    ocr: OCR_PROTOCOL,
  },
};

/** Local servers. They accept the efforts none, low, medium and high. */
const LOCAL_PROFILE: HostProfile = {
  ...GENERIC_HOST_PROFILE,
  rules: [effortRule(null, THREE_EFFORTS)],
};

/** The llama.cpp server. It reports the usage of only one choice. */
const LLAMA_CPP_PROFILE: HostProfile = {
  ...LOCAL_PROFILE,
  chatFields: new Set([...LOCAL_PROFILE.chatFields].filter((field) => field !== "n")),
};

const OLLAMA_PROFILE: HostProfile = {
  ...LOCAL_PROFILE,
  returnedFields: ["reasoning", "extra_content"],
};

const MISTRAL_REASONING_MODELS =
  /small-(?:2603|latest)|medium-(?:3[.-]5|2604|latest)|large-4|magistral|glm/;

/** Mistral. It returns 422 for unknown fields (docs.mistral.ai, OpenAPI). */
const MISTRAL_PROFILE: HostProfile = {
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
    // Mistral's reasoning models support only `none` and `high`. Other models reject the field.
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
    toolIds: NINE_CHARACTER_ID_FORMAT,
    // The text isn't empty, because mistral-common rejects assistant messages without content or
    // calls.
    bridgeText: "Done.",
    reasoning: { as: "thinking", models: MISTRAL_REASONING_MODELS },
  },
  textsMax: 32,
  calls: {
    moderation: MODERATION_PROTOCOL,
    transcription: createTranscriptionProtocol({ canStream: true }),
    speech: MISTRAL_SPEECH_PROTOCOL,
    ocr: OCR_PROTOCOL,
  },
};

/** DeepSeek, which thinks by default. The efforts are from DeepSeek's guide "Thinking Mode". */
const DEEPSEEK_PROFILE: HostProfile = {
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
};

/**
 * xAI. Reasoning models reject stop sequences and penalties. Completion tokens exclude reasoning.
 */
export const XAI_PROFILE: HostProfile = {
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
  calls: { image: XAI_IMAGE_PROTOCOL },
};

/** Voyage, for embeddings and reranking. Its field `input_type` is "query" or "document". */
const VOYAGE_PROFILE: HostProfile = {
  ...COMMON_PROFILE,
  embeddingFields: new Set([...EMBEDDING_FIELDS, "input_type"]),
  nameByField: { dimensions: "output_dimension" },
  rules: [{ fields: ["encoding_format"], values: { float: null } }],
  // This field makes Voyage reject texts that are too long, as OpenAI does.
  embeddingExtras: { truncation: false },
  textsMax: 1000,
  calls: { rerank: createRerankProtocol("top_k") },
};

const JINA_PROFILE: HostProfile = {
  ...COMMON_PROFILE,
  calls: { rerank: createRerankProtocol("top_n") },
};

/**
 * Groq. It returns 400 for logprobs, logit_bias and message names (console.groq.com/docs/openai).
 */
export const GROQ_PROFILE: HostProfile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...CORE_FIELDS, ...PENALTY_FIELDS, "parallel_tool_calls", "seed"]),
  rules: [
    effortRule(/gpt-oss/, EFFORTS_IF_ALWAYS_REASONING),
    effortRule(/qwen3/, {
      minimal: "default",
      low: "default",
      medium: "default",
      high: "default",
      xhigh: "default",
      max: "default",
    }),
    effortRule(null),
  ],
  plainStyle: { reasoning: { as: "reasoning", models: /gpt-oss|qwen3/ } },
  usageShape: { inside: "x_groq" },
  // Only `verbose_json` includes the duration. Groq bills at least 10 s.
  calls: {
    transcription: createTranscriptionProtocol({
      format: "verbose_json",
      acceptsPrompt: true,
      secondsMin: BILLED_SECONDS_MIN,
    }),
    speech: SPEECH_PROTOCOL,
  },
};

/** Together. Most of its models think by default (docs.together.ai, "Reasoning"). */
export const TOGETHER_PROFILE: HostProfile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...USUAL_FIELDS, ...SAMPLER_FIELDS, "logit_bias", "n"]),
  embeddingFields: EMBEDDING_FIELDS,
  rules: [
    effortRule(/llama/i),
    effortRule(/gpt-oss/, EFFORTS_IF_ALWAYS_REASONING),
    effortRule(null, { ...THREE_EFFORTS, none: { reasoning: { enabled: false } } }),
  ],
  plainStyle: { keepsNames: true },
};

/** Fireworks. It accepts the efforts none, low, medium and high. */
const FIREWORKS_PROFILE: HostProfile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...USUAL_FIELDS, ...SAMPLER_FIELDS, "logit_bias", "n", "prompt_cache_key"]),
  cacheHeader: "x-session-affinity",
  embeddingFields: EMBEDDING_FIELDS,
  rules: [effortRule(/gpt-oss/, EFFORTS_IF_ALWAYS_REASONING), effortRule(null, THREE_EFFORTS)],
  // Without this field, Fireworks silently lowers `max_tokens`.
  chatExtras: { context_length_exceeded_behavior: "error" },
  plainStyle: { keepsNames: true, reasoning: { as: "reasoning_content" } },
};

/**
 * Cerebras. It returns 400 for penalties, `logit_bias` and `parallel_tool_calls`
 * (inference-docs.cerebras.ai, OpenAI compatibility).
 */
export const CEREBRAS_PROFILE: HostProfile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...CORE_FIELDS, ...LOGPROB_FIELDS, "seed"]),
  rules: [
    effortRule(/gpt-oss/, EFFORTS_IF_ALWAYS_REASONING),
    effortRule(/glm/, THREE_EFFORTS),
    effortRule(null),
  ],
  capField: "max_completion_tokens",
  plainStyle: { reasoning: { as: "reasoning", models: /gpt-oss|glm/ } },
};

/** OpenRouter. It accepts OpenAI's fields and drops fields that a model doesn't support. */
const OPENROUTER_PROFILE: HostProfile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...USUAL_FIELDS, ...SAMPLER_FIELDS, "logit_bias", "verbosity"]),
  embeddingFields: EMBEDDING_FIELDS,
  rules: [effortRule(null, { max: "xhigh" })],
  plainStyle: {
    keepsNames: true,
    keepsCacheMarks: true,
    reasoning: { as: "reasoning", details: true },
  },
  summarizesThoughts: true,
};

export const HOST_PROFILE_BY_ID = {
  openai: OPENAI_HOST_PROFILE,
  azure: { ...OPENAI_HOST_PROFILE, keyHeader: "api-key", speaksResponses: false, chatExtras: {} },
  mistral: MISTRAL_PROFILE,
  groq: GROQ_PROFILE,
  deepseek: DEEPSEEK_PROFILE,
  together: TOGETHER_PROFILE,
  fireworks: FIREWORKS_PROFILE,
  xai: XAI_PROFILE,
  cerebras: CEREBRAS_PROFILE,
  openrouter: OPENROUTER_PROFILE,
  voyage: VOYAGE_PROFILE,
  jina: JINA_PROFILE,
  ollama: OLLAMA_PROFILE,
  vllm: LOCAL_PROFILE,
  llamacpp: LLAMA_CPP_PROFILE,
  generic: GENERIC_HOST_PROFILE,
} as const satisfies Readonly<Record<string, HostProfile>>;

export const PROVIDER_HOST_PROFILES: ReadonlyMap<string, HostProfile> = new Map(
  Object.entries(HOST_PROFILE_BY_ID),
);
