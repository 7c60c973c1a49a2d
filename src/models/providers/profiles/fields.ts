import type { Profile } from "../../protocols/chat/profile.ts";

/** Names of request fields (openapi.yaml, CreateChatCompletionRequest), put together by profiles. */
// `user` stays here: it names the customer's customer. `store`, `metadata` (which needs `store`),
// `moderation` and everything priced apart is never forwarded. The cap and `stream` are set by us.
export const CORE = [
  "messages",
  "reasoning_effort",
  "response_format",
  "stop",
  "temperature",
  "tool_choice",
  "tools",
  "top_p",
];
export const PENALTIES = ["frequency_penalty", "presence_penalty"];
export const LOGPROBS = ["logprobs", "top_logprobs"];
/** What open models know beside OpenAI's. */
export const SAMPLERS = ["min_p", "repetition_penalty", "top_k"];
/** What nearly every host knows. */
export const USUAL = [...CORE, ...PENALTIES, ...LOGPROBS, "parallel_tool_calls", "seed"];
export const ALL_FIELDS = [...USUAL, "function_call", "functions", "logit_bias", "n"];
export const EMBEDDING_FIELDS: ReadonlySet<string> = new Set([
  "input",
  "dimensions",
  "encoding_format",
]);
const NO_FIELDS: ReadonlySet<string> = new Set();

/** What most profiles say; by itself one without requests. */
export const COMMON: Profile = {
  chatFields: NO_FIELDS,
  embeddingFields: NO_FIELDS,
  capField: "max_tokens",
  streamOptions: { include_usage: true },
  developerRole: false,
  chatPath: "/chat/completions",
  embeddingsPath: "/embeddings",
};
