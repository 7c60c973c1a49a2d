import { EFFORTS_IF_ALWAYS_REASONING, effortRule, THREE_EFFORTS } from "./effort.ts";
import {
  COMMON_PROFILE,
  CORE_FIELDS,
  EMBEDDING_FIELDS,
  LOGPROB_FIELDS,
  PENALTY_FIELDS,
  SAMPLER_FIELDS,
  USUAL_FIELDS,
} from "./fields.ts";
import { BILLED_SECONDS_MIN } from "../../core/transcription.ts";
import { SPEECH_CALL } from "../../protocols/chat/speech.ts";
import { transcriptionCall } from "../../protocols/chat/transcription.ts";
import type { Profile } from "../../protocols/chat/profile.ts";

/**
 * Groq. It returns 400 for logprobs, logit_bias and message names (console.groq.com/docs/openai).
 */
export const GROQ_PROFILE: Profile = {
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
  supportsOneChoice: true,
  usageShape: { inside: "x_groq" },
  // Only `verbose_json` includes the duration. Groq bills at least 10 s.
  calls: {
    transcription: transcriptionCall({
      format: "verbose_json",
      acceptsPrompt: true,
      secondsMin: BILLED_SECONDS_MIN,
    }),
    speech: SPEECH_CALL,
  },
};

/** Together. Most of its models think by default (docs.together.ai, "Reasoning"). */
export const TOGETHER_PROFILE: Profile = {
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

/** Fireworks. Its models support the efforts none, low, medium and high. */
export const FIREWORKS_PROFILE: Profile = {
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
export const CEREBRAS_PROFILE: Profile = {
  ...COMMON_PROFILE,
  chatFields: new Set([...CORE_FIELDS, ...LOGPROB_FIELDS, "seed"]),
  rules: [
    effortRule(/gpt-oss/, EFFORTS_IF_ALWAYS_REASONING),
    effortRule(/glm/, THREE_EFFORTS),
    effortRule(null),
  ],
  capField: "max_completion_tokens",
  plainStyle: { reasoning: { as: "reasoning", models: /gpt-oss|glm/ } },
  supportsOneChoice: true,
};

/** OpenRouter. It accepts OpenAI's fields and drops those that a model doesn't support. */
export const OPENROUTER_PROFILE: Profile = {
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
  supportsOneChoice: true,
};
