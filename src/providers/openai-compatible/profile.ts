/** How one family of OpenAI-compatible hosts differs from the others, as data. */
export type Profile = {
  /** Request fields forwarded as they are; everything else is dropped. */
  readonly chatFields: ReadonlySet<string>;
  readonly embeddingFields: ReadonlySet<string>;
  /** Names that a field has there. */
  readonly renamed: Readonly<Record<string, string>>;
  /** The field that caps the output of one choice. */
  readonly capField: "max_completion_tokens" | "max_tokens";
  /** Sent with every stream; usage is always asked for. */
  readonly streamOptions: Readonly<Record<string, boolean>>;
  /** Whether `developer` messages are known; otherwise they are sent as `system`. */
  readonly developerRole: boolean;
  readonly chatPath: string;
  readonly embeddingsPath: string;
};

// `user` stays here: it names the customer's customer. `store`, `metadata` (which needs `store`),
// `moderation` and everything priced apart is never forwarded. The cap and `stream` are set by us.
const CHAT_FIELDS = [
  "messages",
  "frequency_penalty",
  "function_call",
  "functions",
  "logit_bias",
  "logprobs",
  "n",
  "parallel_tool_calls",
  "presence_penalty",
  "reasoning_effort",
  "response_format",
  "seed",
  "stop",
  "temperature",
  "tool_choice",
  "tools",
  "top_logprobs",
  "top_p",
];
const EMBEDDING_FIELDS = ["input", "dimensions", "encoding_format"];
const PATHS = { chatPath: "/chat/completions", embeddingsPath: "/embeddings" };

const OPENAI: Profile = {
  ...PATHS,
  chatFields: new Set([
    ...CHAT_FIELDS,
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "verbosity",
  ]),
  embeddingFields: new Set(EMBEDDING_FIELDS),
  renamed: {},
  capField: "max_completion_tokens",
  streamOptions: { include_usage: true, include_obfuscation: false },
  developerRole: true,
};

/** Ollama, vLLM, llama.cpp, proxies: what they all understand. */
const GENERIC: Profile = {
  ...PATHS,
  chatFields: new Set([...CHAT_FIELDS, "min_p", "repetition_penalty", "top_k"]),
  embeddingFields: new Set(EMBEDDING_FIELDS),
  renamed: {},
  capField: "max_tokens",
  streamOptions: { include_usage: true },
  developerRole: false,
};

/** The profiles a PROVIDERS entry may name. */
export const PROFILES: ReadonlyMap<string, Profile> = new Map([
  ["openai", OPENAI],
  ["generic", GENERIC],
]);

export const OPENAI_PROFILE = OPENAI;
