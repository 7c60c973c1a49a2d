import type { Profile } from "../../protocols/chat/profile.ts";

// The fields of OpenAI's CreateChatCompletionRequest (openapi.yaml). Never forwarded: `user` (the
// customer's end user), `store`, `metadata` (which requires `store`), `moderation`, and fields that
// change the price.
export const CORE_FIELDS = [
  "messages",
  "reasoning_effort",
  "response_format",
  "stop",
  "temperature",
  "tool_choice",
  "tools",
  "top_p",
];
export const PENALTY_FIELDS = ["frequency_penalty", "presence_penalty"];
export const LOGPROB_FIELDS = ["logprobs", "top_logprobs"];
export const SAMPLER_FIELDS = ["min_p", "repetition_penalty", "top_k"];
export const USUAL_FIELDS = [
  ...CORE_FIELDS,
  ...PENALTY_FIELDS,
  ...LOGPROB_FIELDS,
  "parallel_tool_calls",
  "seed",
];
export const ALL_FIELDS = [...USUAL_FIELDS, "function_call", "functions", "logit_bias", "n"];
export const EMBEDDING_FIELDS: ReadonlySet<string> = new Set([
  "input",
  "dimensions",
  "encoding_format",
]);
const NO_FIELDS: ReadonlySet<string> = new Set();

/** The base of all profiles. On its own, it supports no kind of request. */
export const COMMON_PROFILE: Profile = {
  chatFields: NO_FIELDS,
  embeddingFields: NO_FIELDS,
  capField: "max_tokens",
  streamOptions: { include_usage: true },
  acceptsDeveloperRole: false,
};
