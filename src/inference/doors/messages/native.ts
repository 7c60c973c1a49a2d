import { success } from "../../../lib/failure.ts";
import type { Result } from "../../../lib/failure.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import type { Block, CountBody, Message, MessagesBody } from "./request.ts";
import { withoutServerTools } from "./tools.ts";
import { isOurs } from "./thoughts.ts";

/**
 * A Messages request as it passes to a route of this dialect: what is named here goes on as the client
 * wrote it, everything else is left out and named. Betas and fields as of 2026-11 (@anthropic-ai/sdk 1.12).
 */
export type NativeRequest = {
  readonly body: JsonObject;
  /** Values of `anthropic-beta` that pass. */
  readonly betas: readonly string[];
  readonly dropped: ReadonlySet<string>;
};

/** Betas that cost nothing more than their tokens; any other value is left out with its fields. */
const BETAS: ReadonlySet<string> = new Set([
  "claude-code-20250219",
  "interleaved-thinking-2025-05-14",
  "effort-2025-11-24",
  "context-management-2025-06-27",
  "structured-outputs-2025-11-13",
  "task-budgets-2026-03-13",
  "thinking-token-count-2026-05-13",
  "thinking-display-updates-2026-08-18",
  "thinking-binding-controls-2026-08-01",
  "mid-conversation-system-2026-04-07",
  "mid-conversation-system-clear-at-2026-08-21",
  "mid-conversation-output-config-2026-07-01",
  "mid-conversation-tool-changes-2026-07-01",
  "inline-tools-2026-09-15",
  "advanced-tool-use-2025-11-20",
  "fine-grained-tool-streaming-2025-05-14",
  "prompt-caching-scope-2026-01-05",
  "model-context-window-exceeded-2025-08-26",
  "output-128k-2025-02-19",
]);
/** Tools that the client runs have a beta for each of their versions. */
const CLIENT_TOOL_BETA = /^computer-use-\d{4}-\d{2}-\d{2}$/;

/** Fields that pass with their beta or not at all; the field alone is a 400 there. */
const NEEDS_BETA: Readonly<Record<string, string>> = {
  context_management: "context-management-2025-06-27",
};
const TASK_BUDGET_BETA = "task-budgets-2026-03-13";
const BINDING_BETA = "thinking-binding-controls-2026-08-01";
const TOOLS_BETA = "advanced-tool-use-2025-11-20";
/** Fields of a tool that belong to that beta. */
const TOOLS_BETA_FIELDS = ["defer_loading", "input_examples", "allowed_callers"];

/** Fields that pass as they are. */
const PASSES = [
  "system",
  "tool_choice",
  "cache_control",
  "stop_sequences",
  "temperature",
  "top_p",
  "top_k",
] as const;
/** Fields that are read here, and say nothing upstream or are said there by us. */
const READ: ReadonlySet<string> = new Set([
  ...PASSES,
  "model",
  "messages",
  "max_tokens",
  "stream",
  "tools",
  "thinking",
  "output_config",
  "output_format",
  "service_tier",
  "speed",
  "container",
  "mcp_servers",
  "compaction",
  "fallbacks",
  "fallback_credit_token",
  "thread",
  "billing_policy",
  "context_management",
]);

/** The values of `anthropic-beta`, which may be a list and may be empty. */
export function betasIn(header: string | undefined): readonly string[] {
  const values = (header ?? "").split(",").map((value) => value.trim());
  return [...new Set(values)].filter((value) => BETAS.has(value) || CLIENT_TOOL_BETA.test(value));
}

/**
 * The request for a native route, without model, cap and stream, which the adapter sets. Failures: 400 for a
 * forced tool that costs what is not priced.
 */
export function nativeOf(
  body: MessagesBody | CountBody,
  betas: readonly string[],
): Result<NativeRequest> {
  const dropped = new Set(Object.keys(body).filter((field) => !READ.has(field)));
  dropped.delete("metadata"); // telemetry of the client's, which names nobody here
  const tools = withoutServerTools(body, dropped);
  if (!tools.ok) return tools;
  const has = (beta: string): boolean => betas.includes(beta);
  const sent: Record<string, unknown> = {
    ...(body["max_tokens"] === 0 && { max_tokens: 0 }), // warms a cache; every other cap is the grant's
    messages: body.messages.map(messageOf).filter(({ content }) => content.length > 0),
  };
  for (const field of PASSES) {
    const value = body[field];
    if (value !== undefined && value !== null) sent[field] = value;
  }
  if (tools.value.length > 0) {
    sent["tools"] = has(TOOLS_BETA)
      ? tools.value
      : tools.value.map((tool) => without(tool, TOOLS_BETA_FIELDS));
  } else delete sent["tool_choice"];
  for (const [field, beta] of Object.entries(NEEDS_BETA)) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (has(beta)) sent[field] = value;
    else dropped.add(field);
  }
  Object.assign(sent, thinkingOf(body, has(BINDING_BETA)), outputConfigOf(body, has, dropped));
  return success({ body: sent, betas, dropped });
}

function thinkingOf({ thinking }: CountBody, isBindable: boolean): JsonObject {
  if (thinking === undefined || thinking === null) return {};
  return { thinking: isBindable ? thinking : without(thinking, ["block_binding"]) };
}

/** `output_format` is the beta's old name for `output_config.format`. */
function outputConfigOf(
  { output_config: config, output_format: format }: CountBody,
  has: (beta: string) => boolean,
  dropped: Set<string>,
): JsonObject {
  const said: Record<string, unknown> = { ...(format && { format }), ...config };
  if (said["task_budget"] !== undefined && !has(TASK_BUDGET_BETA)) {
    delete said["task_budget"];
    dropped.add("output_config.task_budget");
  }
  return Object.keys(said).length === 0 ? {} : { output_config: said };
}

/** A message whose blocks pass: empty texts and thoughts that Claude did not sign are a 400 there. */
function messageOf(message: Message): Message {
  const { content } = message;
  if (typeof content === "string") return message;
  return { ...message, content: (content as Block[]).filter(passes) } as Message;
}

function passes(block: Block): boolean {
  if (block.type === "text") return block.text !== "";
  if (block.type !== "thinking") return true;
  const { signature } = block;
  return typeof signature === "string" && signature !== "" && !isOurs(signature);
}

function without(value: JsonObject, fields: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([field]) => !fields.includes(field)));
}
