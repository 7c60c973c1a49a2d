/**
 * The rule for forwarding a field on native routes. Fields without a rule are dropped and listed in
 * `x-dropped`. A beta's fields are sent only if the client names the beta (@anthropic-ai/sdk 1.12).
 */
export type NativeFieldRule =
  | "word"
  /** The ID of a tool call, converted to characters that Claude accepts. */
  | "id"
  | "json"
  | "content"
  | { readonly list: NativeFieldRule }
  | { readonly object: NativeFieldRules }
  /** The fields of an object, by the object's `type`. */
  | { readonly types: Readonly<Record<string, NativeFieldRules>> }
  | { readonly beta: string; readonly rule: NativeFieldRule };

export type NativeFieldRules = Readonly<Record<string, NativeFieldRule>>;

const CACHE: NativeFieldRules = { cache_control: { object: { ttl: "word" } } };
const CITATIONS: NativeFieldRule = { object: { enabled: "word" } };
const CALLER: NativeFieldRules = { caller: { object: { tool_id: "word" } } };
const ERROR: NativeFieldRules = { error_code: "word", error_message: "word" };
const RESULT: NativeFieldRules = { tool_use_id: "id", content: "content", ...CACHE };
const OUTPUT: NativeFieldRules = {
  content: "content",
  return_code: "word",
  stderr: "word",
  stdout: "word",
  encrypted_stdout: "word",
};
const CALL: NativeFieldRules = { id: "id", name: "word", input: "json", ...CALLER, ...CACHE };
const CITATION: NativeFieldRules = Object.fromEntries(
  [
    "cited_text",
    "document_index",
    "document_title",
    "encrypted_index",
    "end_block_index",
    "end_char_index",
    "end_page_number",
    "search_result_index",
    "source",
    "start_block_index",
    "start_char_index",
    "start_page_number",
    "title",
    "url",
  ].map((field) => [field, "word"]),
);

const BASE64: NativeFieldRules = { media_type: "word", data: "word" };

/**
 * Fields to forward to Claude, by block type. Includes blocks of Anthropic's tools in the history.
 */
export const NATIVE_BLOCK_FIELDS: Readonly<Record<string, NativeFieldRules>> = {
  text: { text: "word", citations: { list: { object: CITATION } }, ...CACHE },
  image: {
    source: { types: { base64: BASE64, url: { url: "word" } } },
    transformations: { object: { oversized_image: "word" } },
    ...CACHE,
  },
  document: {
    source: { types: { base64: BASE64, text: BASE64, content: { content: "content" } } },
    title: "word",
    context: "word",
    citations: CITATIONS,
    ...CACHE,
  },
  search_result: {
    source: "word",
    title: "word",
    content: "content",
    citations: CITATIONS,
    ...CACHE,
  },
  tool_use: { ...CALL, toolset_name: "word" },
  tool_result: { ...RESULT, is_error: "word", toolset_name: "word" },
  tool_reference: { tool_name: "word", ...CACHE },
  thinking: { thinking: "word", signature: "word" },
  redacted_thinking: { data: "word" },
  server_tool_use: CALL,
  web_search_tool_result: { ...RESULT, ...CALLER },
  web_search_result: { encrypted_content: "word", title: "word", url: "word", page_age: "word" },
  web_search_tool_result_error: ERROR,
  web_fetch_tool_result: { ...RESULT, ...CALLER },
  web_fetch_result: { url: "word", content: "content", retrieved_at: "word" },
  web_fetch_tool_result_error: ERROR,
  code_execution_tool_result: RESULT,
  code_execution_result: OUTPUT,
  encrypted_code_execution_result: OUTPUT,
  code_execution_tool_result_error: ERROR,
  bash_code_execution_tool_result: RESULT,
  bash_code_execution_result: OUTPUT,
  bash_code_execution_tool_result_error: ERROR,
  text_editor_code_execution_tool_result: RESULT,
  text_editor_code_execution_view_result: {
    content: "word",
    file_type: "word",
    num_lines: "word",
    start_line: "word",
    total_lines: "word",
  },
  text_editor_code_execution_create_result: { is_file_update: "word" },
  text_editor_code_execution_str_replace_result: {
    lines: { list: "word" },
    new_lines: "word",
    new_start: "word",
    old_lines: "word",
    old_start: "word",
  },
  text_editor_code_execution_tool_result_error: ERROR,
  tool_search_tool_result: RESULT,
  tool_search_tool_search_result: { tool_references: "content" },
  tool_search_tool_result_error: ERROR,
};

const TOOLS_BETA = "advanced-tool-use-2025-11-20";

const TOOL: NativeFieldRules = {
  name: "word",
  description: "word",
  input_schema: "json",
  strict: "word",
  eager_input_streaming: "word",
  defer_loading: { beta: TOOLS_BETA, rule: "word" },
  input_examples: { beta: TOOLS_BETA, rule: "json" },
  allowed_callers: { beta: TOOLS_BETA, rule: { list: "word" } },
  max_characters: "word",
  display_height_px: "word",
  display_width_px: "word",
  display_number: "word",
  enable_zoom: "word",
  configs: "json",
  ...CACHE,
};

const AMOUNT: NativeFieldRule = { object: { value: "word" } };
const EDIT: NativeFieldRules = {
  clear_at_least: AMOUNT,
  clear_tool_inputs: "json",
  exclude_tools: { list: "word" },
  keep: "json",
  trigger: AMOUNT,
};

/** Fields of each message in a native request. */
export const NATIVE_MESSAGE_FIELDS: NativeFieldRules = {
  content: "content",
  clear_at: { beta: "mid-conversation-system-clear-at-2026-08-21", rule: "word" },
  output_config: {
    beta: "mid-conversation-output-config-2026-07-01",
    rule: { object: { effort: "word" } },
  },
};

export const NATIVE_REQUEST_FIELDS: NativeFieldRules = {
  system: "content",
  tools: { list: { object: TOOL } },
  tool_choice: { object: { name: "word", disable_parallel_tool_use: "word" } },
  stop_sequences: { list: "word" },
  temperature: "word",
  top_p: "word",
  top_k: "word",
  thinking: {
    object: {
      budget_tokens: "word",
      display: "word",
      block_binding: {
        beta: "thinking-binding-controls-2026-08-01",
        rule: { object: { prefix_mismatch_behavior: "word" } },
      },
    },
  },
  output_config: {
    object: {
      effort: "word",
      format: { object: { schema: "json" } },
      task_budget: {
        beta: "task-budgets-2026-03-13",
        rule: { object: { total: "word", remaining: "word" } },
      },
    },
  },
  context_management: {
    beta: "context-management-2025-06-27",
    rule: { object: { edits: { list: { object: EDIT } } } },
  },
  ...CACHE,
};

/** Fields without an equivalent in chat requests. */
export const UNCONVERTIBLE_FIELDS: ReadonlySet<string> = new Set([
  "text.citations",
  "image.transformations",
  "document.citations",
  "search_result.citations",
  "messages.clear_at",
  "messages.output_config",
  "tools.eager_input_streaming",
  "tools.defer_loading",
  "tools.input_examples",
  "tools.allowed_callers",
  "thinking.display",
  "thinking.block_binding",
  "output_config.task_budget",
]);

const BETAS_WITHOUT_FIELDS = [
  "claude-code-20250219",
  "interleaved-thinking-2025-05-14",
  "effort-2025-11-24",
  "structured-outputs-2025-11-13",
  "thinking-token-count-2026-05-13",
  "thinking-display-updates-2026-08-18",
  "mid-conversation-system-2026-04-07",
  "fine-grained-tool-streaming-2025-05-14",
  "prompt-caching-scope-2026-01-05",
  "model-context-window-exceeded-2025-08-26",
  "output-128k-2025-02-19",
];
const CLIENT_TOOL_BETA = /^computer-use-\d{4}-\d{2}-\d{2}$/;
const FORWARDED_BETAS: ReadonlySet<string> = new Set([
  ...BETAS_WITHOUT_FIELDS,
  ...betasOf(NATIVE_MESSAGE_FIELDS),
  ...betasOf(NATIVE_REQUEST_FIELDS),
]);

function betasOf(fields: NativeFieldRules): readonly string[] {
  return Object.values(fields).flatMap(betasIn);
}

function betasIn(rule: NativeFieldRule): readonly string[] {
  if (typeof rule === "string") return [];
  if ("list" in rule) return betasIn(rule.list);
  if ("types" in rule) return Object.values(rule.types).flatMap(betasOf);
  return "beta" in rule ? [rule.beta, ...betasIn(rule.rule)] : betasOf(rule.object);
}

/** Reports whether to forward a beta: the gateway knows its fields, and it costs only tokens. */
export function isForwardedBeta(value: string): boolean {
  return FORWARDED_BETAS.has(value) || CLIENT_TOOL_BETA.test(value);
}
