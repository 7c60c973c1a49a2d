import type { Usage } from "../../../shared/usage.ts";
import { isObject, listOf, objectOf, parseObject, textOf } from "../../core/json-value.ts";
import { acceptedArguments } from "../../core/accepted-history.ts";
import { isEmpty, sealThoughts } from "../../core/stored-thoughts.ts";
import type { Named } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import { claudeBlock } from "./client-thoughts.ts";

/** Why a message ended, in this dialect (@anthropic-ai/sdk, StopReason). */
type StopReason = "end_turn" | "max_tokens" | "tool_use" | "refusal";

/** A message as the client gets it, without usage: blocks in the order thoughts, text, calls. */
export type ClientMessage = {
  readonly content: readonly JsonObject[];
  readonly stop_reason: StopReason;
  readonly stop_sequence: null;
  readonly stop_details: JsonObject | null;
};

/** Tools as the client calls them, by the names that were sent; the others have one name. */
export type Names = ReadonlyMap<string, string>;

/** The core's answer (a chat completion) as a message. */
export function clientMessageOf({ choices }: JsonObject, names: Names): ClientMessage {
  const choice: Named<"message" | "finish_reason"> = objectOf(listOf(choices)[0]);
  const message: Message = objectOf(choice.message);
  const calls = listOf(message.tool_calls).filter(isObject);
  const refusal = textOf(message.refusal);
  const text = textOf(message.content) + refusal;
  const stop = stopOf(textOf(choice.finish_reason), {
    calls: calls.length > 0,
    refusal: refusal === "" ? null : refusal,
  });
  return {
    content: [
      ...thoughtsOf(message, calls),
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...calls.map((call) => useOf(call, names)),
    ],
    ...stop,
  };
}

type Message = Named<
  "content" | "refusal" | "tool_calls" | "reasoning_details" | "reasoning_content"
>;

/** What is readable of the thoughts, and what their maker needs back in the next turn. */
function thoughtsOf(message: Message, calls: readonly JsonObject[]): readonly JsonObject[] {
  const details = listOf(message.reasoning_details).filter(isObject);
  const claude = details.map(claudeBlock).filter((block) => block !== null);
  const foreign = {
    details: details.filter((detail) => claudeBlock(detail) === null),
    extras: Object.fromEntries(
      calls.flatMap(({ id, extra_content: extra }) =>
        isObject(extra) ? [[textOf(id), extra]] : [],
      ),
    ),
    text: "", // stands in the block itself
  };
  // Claude's blocks say what was readable; their text stands nowhere else.
  const thinking = claude.length > 0 ? "" : textOf(message.reasoning_content);
  if (thinking === "" && isEmpty(foreign)) return claude;
  return [...claude, { type: "thinking", thinking, signature: sealThoughts(foreign) }];
}

/** Arguments that are no JSON object stand whole in one field: the tool refuses them, and the model tries again. */
function useOf({ id, function: called }: JsonObject, names: Names): JsonObject {
  const { name: sent, arguments: said } = objectOf(called);
  const name = names.get(textOf(sent)) ?? sent;
  const input = parseObject(acceptedArguments(textOf(said))) ?? {};
  return { type: "tool_use", id, name, input, caller: DIRECT };
}

/** Who asked for a call: the model itself, and no other tool. */
export const DIRECT: JsonObject = { type: "direct" };

/**
 * A block of Claude's own without its nulls, which older clients do not take (@ai-sdk/anthropic 2 and 3: `citations`,
 * `caller`), and with who asked for a call, which newer ones demand.
 */
export function wholeBlock(block: unknown): JsonObject {
  const said: JsonObject & Named<"type"> = Object.fromEntries(
    Object.entries(objectOf(block)).filter(([, value]) => value !== null),
  );
  return said.type === "tool_use" ? { caller: DIRECT, ...said } : said;
}

/** How a finished choice of the core is said here; calls win over a plain stop. */
export function stopOf(
  finish: string,
  said: { readonly calls: boolean; readonly refusal: string | null },
): Omit<ClientMessage, "content"> {
  const stop = { stop_sequence: null, stop_details: null };
  if (finish === "content_filter" || said.refusal !== null) {
    const explanation = said.refusal;
    return {
      ...stop,
      stop_reason: "refusal",
      stop_details: { type: "refusal", category: null, explanation },
    };
  }
  if (finish === "length") return { ...stop, stop_reason: "max_tokens" };
  return { ...stop, stop_reason: said.calls ? "tool_use" : "end_turn" };
}

/** What is alike for every answer; no tool runs there, and where a region is promised our own headers say so. */
const SERVED: JsonObject = {
  server_tool_use: null,
  service_tier: "standard",
  inference_geo: null,
  speed: null,
};

/**
 * `usage` of a message: `input_tokens` is the rest that was neither read from a cache nor written to
 * one. `costMicro`: what was charged, micros; not in `message_start`, where nobody knows it.
 */
export function usageOf(usage: Usage, costMicro: number | null): JsonObject {
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
    ...SERVED,
    ...(costMicro !== null && { cost_micro: costMicro }),
  };
}

/** What every message says of itself. */
export function envelope({
  id,
  model,
}: {
  readonly id: string;
  readonly model: string;
}): JsonObject {
  return { id, type: "message", role: "assistant", model, container: null, diagnostics: null };
}

/** What `message_start` says of a prompt that the upstream has counted; of the output it says a first token. */
export function initialUsage(usage: Usage): JsonObject {
  return { ...usageOf({ ...usage, output: 1 }, null), output_tokens_details: null };
}

/** Tokens of a prompt that nobody counted yet; at least one: clients take 0 for "not known". */
export function startUsage(likely: number): JsonObject {
  const input = Math.max(1, Math.ceil(likely));
  return initialUsage({ input, cacheRead: 0, cacheWrite: 0, output: 1, reasoning: 0 });
}
