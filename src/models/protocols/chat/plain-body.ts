import {
  hasCacheMark,
  joinContentText,
  createRefusalFailure,
  createUnsupportedFailure,
  usesLegacyFunctions,
  parseTools,
  toOpenAiTool,
} from "../../core/conversation.ts";
import type {
  AssistantMessage,
  AssistantToolCall,
  UserContent,
  UserContentPart,
  FunctionTool,
  RequestedTools,
} from "../../core/conversation.ts";
import { CACHE_MARK, isCacheMarked } from "../../core/cache-marks.ts";
import type { ChatBody, ChatMessage } from "../../core/core-request.ts";
import type { JsonObject, ProviderFailure } from "../../core/provider.ts";
import { AcceptedToolCallIds } from "../../core/tool-calls.ts";
import type { PlainStyle } from "./profile.ts";

/**
 * Reduces messages and tools to features that all hosts support: text without parts or refusals,
 * and function tools. Returns a failure for legacy functions and custom tools.
 */
export function toPlainChatBody(
  body: ChatBody,
  style: PlainStyle,
  model: string,
): { readonly body: JsonObject } | ProviderFailure {
  const requestedTools = parseTools(body);
  if ("reason" in requestedTools) return requestedTools;
  const turns = new PlainTurns(style, model);
  for (const [index, message] of body.messages.entries()) {
    const problem = turns.add(message, index);
    if (problem !== null) return problem;
  }
  const hasTools = requestedTools.list.length > 0;
  const hasToolChoice = hasTools && body.tool_choice !== undefined;
  return {
    body: {
      ...body,
      messages: turns.list,
      tools: hasTools
        ? requestedTools.list.map((tool) => plainTool(tool, style.keepsCacheMarks === true))
        : null,
      tool_choice: hasToolChoice ? plainToolChoice(requestedTools.choice) : null,
    },
  };
}

class PlainTurns {
  readonly list: (JsonObject & { readonly role: string })[] = [];
  readonly #style: PlainStyle;
  readonly #ids: AcceptedToolCallIds | null;
  readonly #sendsReasoning: boolean;

  constructor(style: PlainStyle, model: string) {
    this.#style = style;
    this.#ids = style.toolIds === undefined ? null : new AcceptedToolCallIds(style.toolIds);
    this.#sendsReasoning =
      style.reasoning !== undefined && style.reasoning.models?.test(model) !== false;
  }

  add(message: ChatMessage, index: number): ProviderFailure | null {
    const { role, name } = message;
    if (role === "function" || usesLegacyFunctions(message)) {
      return createRefusalFailure(
        "This model does not support 'functions'. Send 'tools'.",
        `messages[${index}]`,
      );
    }
    const nameField = this.#style.keepsNames === true && typeof name === "string" ? { name } : {};
    if (role === "assistant") return this.#addAssistant(message, nameField, index);
    if (role === "tool") {
      const id = this.#sentId(message.tool_call_id);
      this.list.push({ role, content: plainText(message.content), tool_call_id: id });
    } else if (role === "user") {
      this.#addBridge();
      this.list.push({ role, content: this.#sentContent(message.content), ...nameField });
    } else {
      const { content } = message;
      const keepsMarks = this.#style.keepsCacheMarks === true && hasCacheMark(content);
      const systemContent = keepsMarks ? this.#sentContent(content) : plainText(content);
      this.list.push({ role: "system", content: systemContent, ...nameField });
    }
    return null;
  }

  #addAssistant(
    message: AssistantMessage,
    nameField: JsonObject,
    index: number,
  ): ProviderFailure | null {
    const calls = message.tool_calls ?? [];
    const custom = calls.findIndex(({ type }) => type === "custom");
    if (custom !== -1) {
      return createUnsupportedFailure(
        "Custom tool calls",
        `messages[${index}].tool_calls[${custom}]`,
      );
    }
    const content = plainText(message.content) || (message.refusal ?? "");
    if (this.#style.bridgeText !== undefined && content === "" && calls.length === 0) return null;
    this.list.push({
      role: "assistant",
      content,
      ...this.#reasoning(message, content),
      ...(calls.length > 0 && { tool_calls: calls.flatMap((call) => this.#sentCalls(call)) }),
      ...nameField,
    });
    return null;
  }

  #reasoning(message: AssistantMessage, content: string): JsonObject {
    const reasoning = this.#sendsReasoning ? this.#style.reasoning : undefined;
    const details =
      reasoning?.details === true ? getOpenRouterDetails(message.reasoning_details) : [];
    if (details.length > 0) return { reasoning_details: details };
    const text = message.reasoning_content ?? "";
    if (reasoning === undefined || (text === "" && reasoning.always !== true)) return {};
    if (reasoning.as !== "thinking") return { [reasoning.as]: text };
    const thinking = { type: "thinking", thinking: [{ type: "text", text }] };
    return { content: [thinking, ...(content === "" ? [] : [{ type: "text", text: content }])] };
  }

  #sentCalls(call: AssistantToolCall): JsonObject[] {
    if (call.type === "custom") return [];
    const { name, arguments: argumentsJson } = call.function;
    const functionCall = { name, arguments: argumentsJson.trim() === "" ? "{}" : argumentsJson };
    return [{ id: this.#sentId(call.id), type: "function", function: functionCall }];
  }

  #sentId(id: string): string {
    return this.#ids === null ? id : this.#ids.idFor(id);
  }

  #sentContent(content: UserContent): unknown {
    const keepsMarks = this.#style.keepsCacheMarks === true && hasCacheMark(content);
    if (typeof content === "string" || !(keepsMarks || content.some(isImage))) {
      return plainText(content);
    }
    return content.map((part) => {
      const mark = keepsMarks && isCacheMarked(part) ? CACHE_MARK : {};
      if (part.type !== "image_url") return { type: "text", text: partText(part), ...mark };
      const { url, detail } = part.image_url;
      return { type: "image_url", image_url: { url, ...(detail && { detail }) }, ...mark };
    });
  }

  #addBridge(): void {
    if (this.#style.bridgeText === undefined || this.list.at(-1)?.role !== "tool") return;
    this.list.push({ role: "assistant", content: this.#style.bridgeText });
  }
}

/**
 * Returns the reasoning details that OpenRouter sent. The gateway's own adapters create details of
 * other types.
 */
export function getOpenRouterDetails(
  details: AssistantMessage["reasoning_details"],
): readonly JsonObject[] {
  return (details ?? []).filter(({ type }) => type.startsWith("reasoning."));
}

function isImage({ type }: UserContentPart): boolean {
  return type === "image_url";
}

function plainText(content: string | readonly TextPart[] | null | undefined): string {
  if (typeof content === "string") return content;
  return joinContentText((content ?? []).map((part) => ({ text: partText(part) })));
}
type TextPart =
  | UserContentPart
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly refusal: string };

function partText(part: TextPart): string {
  if (part.type === "refusal") return part.refusal;
  return part.type === "text" ? part.text : "";
}

function plainTool(tool: FunctionTool, keepsMarks: boolean): JsonObject {
  const mark = keepsMarks && tool.isMarked === true ? CACHE_MARK : {};
  return { ...toOpenAiTool(tool, true), ...mark };
}

function plainToolChoice(choice: RequestedTools["choice"]): unknown {
  return typeof choice === "string" ? choice : { type: "function", function: choice };
}
