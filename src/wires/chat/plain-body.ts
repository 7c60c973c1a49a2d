import { plainText, refusal, unsupported } from "../../core/conversation.ts";
import { isObject, listOf, textOf } from "../../core/json-value.ts";
import type { JsonObject, ProviderFailure } from "../../core/provider.ts";
import { ToolCallIds } from "../../core/tool-call-id.ts";
import { toolsOf } from "../../core/tools.ts";
import type { Tool, Tools } from "../../core/tools.ts";
import type { PlainStyle } from "./profile.ts";

/**
 * A chat request whose messages and tools hold only what every model knows: texts instead of parts
 * (where there is no image) and of refusals, functions alone as tools, the tools of `allowed_tools`
 * alone. Refused: legacy functions, custom tools.
 */
export function plainBody(
  body: JsonObject,
  style: PlainStyle,
  model: string,
): { readonly body: JsonObject } | ProviderFailure {
  const found = toolsOf(body);
  if ("reason" in found) return found;
  const turns = new PlainTurns(style, model);
  for (const [index, message] of listOf(body["messages"]).filter(isObject).entries()) {
    const problem = turns.add(message, index);
    if (problem !== null) return problem;
  }
  const hasTools = found.list.length > 0;
  const isChosen = hasTools && isGiven(body["tool_choice"]);
  return {
    body: {
      ...body,
      messages: turns.list,
      tools: hasTools ? found.list.map(plainTool) : null,
      tool_choice: isChosen ? plainChoice(found.choice) : null,
    },
  };
}

/** Messages, one after the other; tool call ids are mapped over all of them. */
class PlainTurns {
  readonly list: JsonObject[] = [];
  readonly #style: PlainStyle;
  readonly #ids: ToolCallIds | null;
  readonly #reasons: boolean;

  constructor(style: PlainStyle, model: string) {
    this.#style = style;
    this.#ids = style.toolIds === undefined ? null : new ToolCallIds(style.toolIds);
    this.#reasons = style.reasoning !== undefined && style.reasoning.models?.test(model) !== false;
  }

  /** Adds a message; or says why it cannot be sent. */
  add(message: JsonObject, index: number): ProviderFailure | null {
    const { role, name } = message;
    if (role === "function" || isObject(message["function_call"])) {
      return refusal("This model does not take 'functions': send 'tools'.", `messages[${index}]`);
    }
    const named = this.#style.names === true && typeof name === "string" ? { name } : {};
    if (role === "assistant") return this.#addAssistant(message, named, index);
    if (role === "tool") {
      const id = this.#id(message["tool_call_id"]);
      this.list.push({ role, content: spoken(message["content"]), tool_call_id: id });
    } else if (role === "user") {
      this.#bridge();
      this.list.push({ role, content: userContent(message["content"]), ...named });
    } else this.list.push({ role: "system", content: spoken(message["content"]), ...named });
    return null;
  }

  #addAssistant(message: JsonObject, named: JsonObject, index: number): ProviderFailure | null {
    const calls = listOf(message["tool_calls"]).filter(isObject);
    const custom = calls.findIndex((call) => !isObject(call["function"]));
    if (custom !== -1) {
      return unsupported("Custom tool calls", `messages[${index}].tool_calls[${custom}]`);
    }
    const content = spoken(message["content"]) || textOf(message["refusal"]);
    if (this.#style.bridge !== undefined && content === "" && calls.length === 0) return null;
    this.list.push({
      role: "assistant",
      content,
      ...this.#reasoning(textOf(message["reasoning_content"]), content),
      ...(calls.length > 0 && { tool_calls: calls.map((call) => this.#call(call)) }),
      ...named,
    });
    return null;
  }

  #reasoning(text: string, content: string): JsonObject {
    const reasoning = this.#reasons ? this.#style.reasoning : undefined;
    if (reasoning === undefined || (text === "" && reasoning.always !== true)) return {};
    if (reasoning.as !== "thinking") return { [reasoning.as]: text };
    const thinking = { type: "thinking", thinking: [{ type: "text", text }] };
    return { content: [thinking, ...(content === "" ? [] : [{ type: "text", text: content }])] };
  }

  #call(call: JsonObject): JsonObject {
    const { name, arguments: given } = call["function"] as JsonObject;
    const text = textOf(given);
    return {
      id: this.#id(call["id"]),
      type: "function",
      function: { name, arguments: text.trim() === "" ? "{}" : text },
    };
  }

  #id(raw: unknown): string {
    const id = textOf(raw);
    return this.#ids === null ? id : this.#ids.idFor(id);
  }

  #bridge(): void {
    if (this.#style.bridge === undefined || this.list.at(-1)?.["role"] !== "tool") return;
    this.list.push({ role: "assistant", content: this.#style.bridge });
  }
}

/** Text, or text and images where there is one. */
function userContent(content: unknown): unknown {
  const parts = listOf(content).filter(isObject);
  if (!parts.some((part) => isObject(part["image_url"]))) return spoken(content);
  return parts.map((part) => {
    if (!isObject(part["image_url"])) return { type: "text", text: textOf(part["text"]) };
    const { url, detail } = part["image_url"];
    return { type: "image_url", image_url: { url, ...(isGiven(detail) && { detail }) } };
  });
}

/** The text of a content, refusals too. */
function spoken(content: unknown): string {
  if (typeof content === "string") return content;
  return plainText(
    listOf(content)
      .filter(isObject)
      .map((part) => ({ text: part["text"] ?? part["refusal"] })),
  );
}

function plainTool({ name, description, parameters, strict }: Tool): JsonObject {
  return {
    type: "function",
    function: {
      name,
      ...(description !== "" && { description }),
      parameters,
      ...(strict && { strict }),
    },
  };
}

function plainChoice(choice: Tools["choice"]): unknown {
  return typeof choice === "string" ? choice : { type: "function", function: choice };
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
