import { costFields } from "../../../shared/money.ts";
import type { Usage } from "../../../shared/usage.ts";
import {
  isObject,
  listOf,
  objectOf,
  parseObject,
  removeNulls,
  textOf,
} from "../../core/json-value.ts";
import { normalizeArguments } from "../../core/tool-calls.ts";
import { hasNoThoughts, serializeThoughts } from "../../core/stored-thoughts.ts";
import type { KnownFields } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import { detailToClaudeThought } from "../../claude/thoughts.ts";

export type ClientMessage = {
  readonly content: readonly JsonObject[];
  readonly stop_reason: "end_turn" | "max_tokens" | "tool_use" | "refusal";
  readonly stop_sequence: null;
  readonly stop_details: JsonObject | null;
};

/** The client's tool names, by the names sent to the provider. Excludes unchanged names. */
export type OriginalToolNames = ReadonlyMap<string, string>;

export function toClientMessage({ choices }: JsonObject, names: OriginalToolNames): ClientMessage {
  const choice: KnownFields<"message" | "finish_reason"> = objectOf(listOf(choices)[0]);
  const message: Message = objectOf(choice.message);
  const calls = listOf(message.tool_calls).filter(isObject);
  const refusal = textOf(message.refusal);
  const text = textOf(message.content) + refusal;
  const stop = toMessagesStopReason(textOf(choice.finish_reason), {
    calls: calls.length > 0,
    refusal: refusal === "" ? null : refusal,
  });
  return {
    content: [
      ...thinkingBlocks(message, calls),
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...calls.map((call) => toolUseBlock(call, names)),
    ],
    ...stop,
  };
}

type Message = KnownFields<
  "content" | "refusal" | "tool_calls" | "reasoning_details" | "reasoning_content"
>;

function thinkingBlocks(message: Message, calls: readonly JsonObject[]): readonly JsonObject[] {
  const details = listOf(message.reasoning_details).filter(isObject);
  const claudeBlocks = details.map(detailToClaudeThought).filter((block) => block !== null);
  const otherReasoning = {
    details: details.filter((detail) => detailToClaudeThought(detail) === null),
    extras: Object.fromEntries(
      calls.flatMap(({ id, extra_content: extra }) =>
        isObject(extra) ? [[textOf(id), extra]] : [],
      ),
    ),
    text: "",
  };
  // The text of the thoughts is already in Claude's blocks.
  const thinking = claudeBlocks.length > 0 ? "" : textOf(message.reasoning_content);
  if (thinking === "" && hasNoThoughts(otherReasoning)) return claudeBlocks;
  return [
    ...claudeBlocks,
    { type: "thinking", thinking, signature: serializeThoughts(otherReasoning) },
  ];
}

/** Arguments that aren't an object become one field, so that the tool rejects the call. */
function toolUseBlock({ id, function: called }: JsonObject, names: OriginalToolNames): JsonObject {
  const { name: sentName, arguments: argumentsJson } = objectOf(called);
  const name = names.get(textOf(sentName)) ?? sentName;
  const input = parseObject(normalizeArguments(textOf(argumentsJson))) ?? {};
  return { type: "tool_use", id, name, input, caller: DIRECT_CALLER };
}

/** The `caller` of a tool call that the model itself makes. */
export const DIRECT_CALLER: JsonObject = { type: "direct" };

/**
 * Removes null fields from Claude's block, because older clients reject null (@ai-sdk/anthropic 2
 * and 3: `citations`, `caller`). Adds the caller, which newer clients require.
 */
export function completeClaudeBlock(block: unknown): JsonObject {
  const fields = removeNulls(objectOf(block));
  return fields["type"] === "tool_use" ? { caller: DIRECT_CALLER, ...fields } : fields;
}

export function toMessagesStopReason(
  finish: string,
  output: { readonly calls: boolean; readonly refusal: string | null },
): Omit<ClientMessage, "content"> {
  const stop = { stop_sequence: null, stop_details: null };
  if (finish === "content_filter" || output.refusal !== null) {
    return {
      ...stop,
      stop_reason: "refusal",
      stop_details: { type: "refusal", category: null, explanation: output.refusal },
    };
  }
  if (finish === "length") return { ...stop, stop_reason: "max_tokens" };
  return { ...stop, stop_reason: output.calls ? "tool_use" : "end_turn" };
}

/** Constant fields of `usage`. The gateway returns the region in headers. */
const CONSTANT_USAGE_FIELDS: JsonObject = {
  server_tool_use: null,
  service_tier: "standard",
  inference_geo: null,
  speed: null,
};

export function toMessagesUsage(usage: Usage, costMicro: number | null): JsonObject {
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWrite - (usage.cacheWriteHour ?? 0),
      ephemeral_1h_input_tokens: usage.cacheWriteHour ?? 0,
    },
    output_tokens: usage.output,
    output_tokens_details: { thinking_tokens: usage.reasoning },
    ...CONSTANT_USAGE_FIELDS,
    ...(costMicro !== null && costFields(costMicro)),
  };
}

export function createMessagesEnvelope({
  id,
  model,
}: {
  readonly id: string;
  readonly model: string;
}): JsonObject {
  return { id, type: "message", role: "assistant", model, container: null, diagnostics: null };
}

export function toInitialMessagesUsage(usage: Usage): JsonObject {
  return { ...toMessagesUsage({ ...usage, output: 1 }, null), output_tokens_details: null };
}

/** Returns usage with estimated prompt tokens: at least 1, because clients read 0 as unknown. */
export function createEstimatedStartUsage(promptTokens: number): JsonObject {
  const input = Math.max(1, Math.ceil(promptTokens));
  return toInitialMessagesUsage({ input, cacheRead: 0, cacheWrite: 0, output: 1, reasoning: 0 });
}
