import type { Usage } from "../lib/usage.ts";
import type { FinishReason } from "./chunk-builder.ts";
import type { Answer, JsonObject } from "./provider.ts";
import { newToolCallId } from "./chunk-builder.ts";
import { wireUsage } from "./wire-usage.ts";

/** One choice of a native provider's answer, read. */
export type Said = {
  readonly content: string | null;
  readonly reasoning?: string;
  /** `reasoning_details`: what the provider needs back in the next turn. */
  readonly details?: readonly JsonObject[];
  readonly refusal?: string;
  readonly annotations?: readonly JsonObject[];
  readonly tools?: readonly SaidTool[];
  readonly finish: FinishReason;
};
export type SaidTool = {
  readonly id: string | null;
  readonly name: string;
  /** JSON text; "" is a call without arguments. Of a custom tool its input, any text. */
  readonly arguments: string;
  readonly isCustom?: boolean;
  /** What stands beside `function`, e.g. `extra_content`. */
  readonly more?: JsonObject;
};

/** An OpenAI chat completion of these choices; the run sets id, created and model. */
export function completionOf(said: readonly Said[], usage: Usage | null): Answer {
  const choices = said.map((one, index) => ({
    index,
    message: messageOf(one),
    logprobs: null,
    finish_reason:
      one.finish === "stop" && (one.tools ?? []).length > 0 ? "tool_calls" : one.finish,
  }));
  const body = { object: "chat.completion", choices };
  return { body: usage === null ? body : { ...body, usage: wireUsage(usage, "chat") }, usage };
}

function messageOf({
  content,
  reasoning,
  details,
  refusal,
  annotations = [],
  tools = [],
}: Said): JsonObject {
  return {
    role: "assistant",
    content: content === "" && tools.length > 0 ? null : content,
    refusal: refusal ?? null,
    ...(reasoning !== undefined && reasoning !== "" && { reasoning_content: reasoning }),
    ...(details !== undefined && details.length > 0 && { reasoning_details: details }),
    ...(annotations.length > 0 && { annotations }),
    ...(tools.length > 0 && { tool_calls: tools.map(callOf) }),
  };
}

function callOf(tool: SaidTool): JsonObject {
  const id = tool.id === null || tool.id === "" ? newToolCallId() : tool.id;
  if (tool.isCustom === true) {
    return { id, type: "custom", custom: { name: tool.name, input: tool.arguments } };
  }
  const given = tool.arguments === "" ? "{}" : tool.arguments;
  return { id, type: "function", function: { name: tool.name, arguments: given }, ...tool.more };
}
