import { normalizeArguments } from "./tool-calls.ts";
import type { ChatBody, ChatMessage } from "./core-request.ts";
import { isCacheMarked } from "./cache-marks.ts";
import { parseImageUrl } from "./data-url.ts";
import type { ParsedImageUrl } from "./data-url.ts";
import { isObject, listOf, parseObject } from "./json-value.ts";
import type { JsonObject, ProviderFailure } from "./provider.ts";

/** A non-empty part of a turn. If `isMarked`, the prompt should be cached up to this part. */
export type ConversationPart =
  | { readonly kind: "text"; readonly text: string; readonly isMarked?: true }
  /** `at` is the part's path in the request (`messages[0].content[1].image_url`). */
  | {
      readonly kind: "image";
      readonly image: ParsedImageUrl;
      readonly at: string;
      readonly isMarked?: true;
    }
  | { readonly kind: "thought"; readonly detail: JsonObject }
  | {
      readonly kind: "call";
      readonly id: string;
      readonly name: string;
      readonly input: JsonObject;
      readonly extra: JsonObject | null;
    }
  | { readonly kind: "result"; readonly id: string; readonly name: string; readonly text: string };

/** Consecutive messages from the user or from the model. Tool results come first. */
export type ConversationTurn = {
  readonly role: "user" | "assistant";
  readonly parts: readonly ConversationPart[];
};

export type Conversation = {
  readonly system: readonly string[];
  readonly markedSystem?: ReadonlySet<number>;
  readonly turns: readonly ConversationTurn[];
};

/**
 * Converts messages. System and developer messages at the start become the instructions. Later ones
 * become user text in a <system> element. Fails for legacy functions and custom tools.
 */
export function toConversation({ messages }: ChatBody): Conversation | ProviderFailure {
  const system: Instruction[] = [];
  const turns: OpenTurn[] = [];
  const names = new Map<string, string>();
  for (const [index, message] of messages.entries()) {
    const { role } = message;
    if (usesLegacyFunctions(message)) return createLegacyFunctionsFailure();
    if (role === "system" || role === "developer") {
      const text = joinContentText(message.content);
      if (text === "") continue;
      if (turns.length === 0) system.push({ text, isMarked: hasCacheMark(message.content) });
      else appendPart(turns, "user", [{ kind: "text", text: `<system>${text}</system>` }]);
    } else if (role === "tool") {
      const { tool_call_id: id, content } = message;
      appendPart(turns, "user", [
        { kind: "result", id, name: names.get(id) ?? "", text: joinContentText(content) },
      ]);
    } else if (role === "assistant") {
      const parts = assistantParts(message, index, names);
      if ("reason" in parts) return parts;
      appendPart(turns, "assistant", parts);
    } else if (role === "user") {
      appendPart(turns, "user", userParts(message.content, `messages[${index}].content`));
    }
  }
  return buildConversation(system, turns);
}

export function usesLegacyFunctions(message: ChatMessage): boolean {
  return message.role === "function" || (message.role === "assistant" && !!message.function_call);
}

export function joinContentText(content: Content): string {
  if (typeof content === "string") return content;
  return (content ?? [])
    .map(({ text = "" }) => text)
    .filter((text) => text !== "")
    .join("\n");
}

type Instruction = { readonly text: string; readonly isMarked: boolean };

function buildConversation(
  instructions: readonly Instruction[],
  turns: readonly OpenTurn[],
): Conversation {
  const markedIndexes = instructions.flatMap(({ isMarked: isEnd }, index) =>
    isEnd ? [index] : [],
  );
  return {
    system: instructions.map(({ text }) => text),
    ...(markedIndexes.length > 0 && { markedSystem: new Set(markedIndexes) }),
    turns: turns.map(({ role, parts }) => ({ role, parts: orderParts(parts) })),
  };
}

export function hasCacheMark(content: unknown): boolean {
  return listOf(content).filter(isObject).some(isCacheMarked);
}

type Content = string | readonly { readonly text?: string }[] | null | undefined;
type OpenTurn = { role: ConversationTurn["role"]; parts: ConversationPart[] };

function appendPart(
  turns: OpenTurn[],
  role: ConversationTurn["role"],
  parts: readonly ConversationPart[],
): void {
  if (parts.length === 0) return;
  const last = turns.at(-1);
  // Avoids `push(...parts)`, because the number of arguments is limited.
  if (last?.role === role) for (const part of parts) last.parts.push(part);
  else turns.push({ role, parts: [...parts] });
}

function orderParts(parts: readonly ConversationPart[]): readonly ConversationPart[] {
  return [
    ...parts.filter((part) => part.kind === "result"),
    ...parts.filter((part) => part.kind !== "result"),
  ];
}

export type UserContent = Extract<ChatMessage, { role: "user" }>["content"];

export type UserContentPart = Exclude<UserContent, string>[number];

function userParts(content: UserContent, path: string): ConversationPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  return content.flatMap((part, at): ConversationPart[] => {
    const mark = isCacheMarked(part) ? ({ isMarked: true } as const) : {};
    switch (part.type) {
      case "text":
        return part.text === "" ? [] : [{ kind: "text", text: part.text, ...mark }];
      case "file":
        return [
          {
            kind: "image",
            image: parseImageUrl(part.file.file_data),
            at: `${path}[${at}].file.file_data`,
            ...mark,
          },
        ];
      case "image_url":
        return [
          {
            kind: "image",
            image: parseImageUrl(part.image_url.url),
            at: `${path}[${at}].image_url`,
            ...mark,
          },
        ];
    }
  });
}

export type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;
export type AssistantToolCall = NonNullable<AssistantMessage["tool_calls"]>[number];

function assistantParts(
  {
    content,
    refusal: refusalText,
    reasoning_details: details,
    tool_calls: calls,
  }: AssistantMessage,
  index: number,
  names: Map<string, string>,
): ConversationPart[] | ProviderFailure {
  const parts: ConversationPart[] = (details ?? []).map((detail) => ({ kind: "thought", detail }));
  const text = joinContentText(content as Content) || (refusalText ?? "");
  if (text !== "") parts.push({ kind: "text", text });
  for (const [at, call] of (calls ?? []).entries()) {
    const path = `messages[${index}].tool_calls[${at}]`;
    if (call.type === "custom") return createUnsupportedFailure("Custom tool calls", path);
    const { name, arguments: argumentsJson } = call.function;
    const input = parseObject(normalizeArguments(argumentsJson)) ?? {};
    names.set(call.id, name);
    parts.push({ kind: "call", id: call.id, name, input, extra: call.extra_content ?? null });
  }
  return parts;
}

export function createLegacyFunctionsFailure(): ProviderFailure {
  return createRefusalFailure(
    "This model does not support 'functions'. Send 'tools' and 'tool_calls'.",
    "messages",
  );
}

export function createUnsupportedFailure(feature: string, param: string): ProviderFailure {
  return createRefusalFailure(`${feature} are not supported by this model.`, param);
}

/**
 * Returns the failure for an unusable image. Clients detect it by its code and the end of `param`.
 */
export function createBadImageFailure(message: string, at: string): ProviderFailure {
  return { kind: "refused", reason: "image", message, param: at, code: "invalid_value" };
}

/** Returns a failure after which no other route of the model is tried. */
export function createRefusalFailure(message: string, param: string): ProviderFailure {
  return { kind: "refused", reason: "unsupported", message, param };
}

export type FunctionTool = {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly strict: boolean;
  readonly isMarked?: true;
};

/** Returns a tool in OpenAI's format. */
export function toOpenAiTool(
  { name, description, parameters, strict }: FunctionTool,
  keepsStrict: boolean,
): JsonObject & { readonly type: "function" } {
  return {
    type: "function",
    function: {
      name,
      ...(description !== "" && { description }),
      parameters,
      ...(strict && keepsStrict && { strict }),
    },
  };
}

/** The tools of a request, and whether the model may or must call them. */
export type RequestedTools = {
  readonly list: readonly FunctionTool[];
  readonly choice: "auto" | "none" | "required" | { readonly name: string };
  readonly parallel: boolean;
};

/** Returns the tools. Fails for legacy functions, custom tools and unknown choices. */
export function parseTools(body: ChatBody): RequestedTools | ProviderFailure {
  const { tools = [], tool_choice: choice, functions, function_call: legacyChoice } = body;
  if (functions !== undefined || legacyChoice !== undefined) {
    return createRefusalFailure(
      "This model does not support 'functions'. Send 'tools'.",
      "functions",
    );
  }
  const list: FunctionTool[] = [];
  for (const [index, tool] of tools.entries()) {
    if (tool.type === "custom") return createUnsupportedFailure("Custom tools", `tools[${index}]`);
    const one = {
      name: tool.function.name,
      description: tool.function.description ?? "",
      parameters: tool.function.parameters ?? NO_PARAMETERS,
      strict: tool.function.strict === true,
    };
    list.push(isCacheMarked(tool) ? { ...one, isMarked: true } : one);
  }
  const chosenTools = chooseTools(list, choice);
  if ("kind" in chosenTools) return chosenTools;
  return { ...chosenTools, parallel: body.parallel_tool_calls !== false };
}

type ToolChoice = ChatBody["tool_choice"];
type ChosenTools = Pick<RequestedTools, "list" | "choice">;

function chooseTools(
  list: readonly FunctionTool[],
  requested: ToolChoice,
): ChosenTools | ProviderFailure {
  if (typeof requested === "string" && list.length > 0) return { list, choice: requested };
  if (typeof requested !== "object") return { list, choice: "auto" };
  if (requested.type === "allowed_tools") return selectAllowedTools(list, requested.allowed_tools);
  const name = requested.type === "function" ? requested.function.name : null;
  // Unknown function names fail here, because a host's error would repeat them.
  const chosenTool = list.find((tool) => tool.name === name);
  if (chosenTool !== undefined) return { list, choice: { name: chosenTool.name } };
  return createRefusalFailure(
    "'tool_choice' names a function that isn't in 'tools'.",
    "tool_choice",
  );
}

function selectAllowedTools(
  list: readonly FunctionTool[],
  { mode, tools }: Extract<NonNullable<ToolChoice>, { type: "allowed_tools" }>["allowed_tools"],
): ChosenTools | ProviderFailure {
  const names = new Set(
    tools.map((tool) => (tool.type === "function" ? tool.function.name : null)),
  );
  const allowedTools = list.filter((tool) => names.delete(tool.name));
  if (allowedTools.length === 0 || names.size > 0) {
    return createRefusalFailure(
      "'tool_choice' allows a tool that isn't in 'tools'.",
      "tool_choice",
    );
  }
  return { list: allowedTools, choice: mode };
}

/** Returns the instruction for a model that can't be forced to call a tool. */
export function createCallInstruction(
  choice: Exclude<RequestedTools["choice"], "auto" | "none">,
): string {
  if (typeof choice === "string") return "Answer by calling one of the tools.";
  return `Answer by calling the tool ${choice.name}.`;
}

const NO_PARAMETERS: JsonObject = { type: "object", properties: {} };

/** A chat request in a provider-independent form. */
export type Prompt = {
  readonly conversation: Conversation;
  readonly tools: RequestedTools;
  readonly format: OutputFormat;
  readonly stops: readonly string[];
  readonly caches: boolean;
};

/** The requested output: text, any JSON, or JSON that matches a schema. */
export type OutputFormat = "text" | "json" | { readonly schema: JsonObject };

/**
 * Returns the conversation, tools and settings. Fails for multiple choices and for unsupported
 * messages or tools.
 */
export function parsePrompt(body: ChatBody): Prompt | ProviderFailure {
  if ((body.n ?? 1) > 1) return createUnsupportedFailure("Several choices", "n");
  const conversation = toConversation(body);
  if ("kind" in conversation) return conversation;
  const tools = parseTools(body);
  if ("kind" in tools) return tools;
  const stops = stopSequencesOf(body);
  const usesCache = CACHE_FIELDS.some((field) => body[field] !== undefined);
  return { conversation, tools, format: readOutputFormat(body), stops, caches: usesCache };
}

const CACHE_FIELDS = [
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
] as const;

function stopSequencesOf({ stop = [] }: ChatBody): readonly string[] {
  return [stop].flat().filter((text) => text.trim() !== "");
}

/** Returns the output format. An empty schema allows any JSON. */
export function readOutputFormat({ response_format: format }: ChatBody): OutputFormat {
  if (format === undefined || format.type === "text") return "text";
  const schema = format.type === "json_schema" ? format.json_schema.schema : undefined;
  return schema === undefined || Object.keys(schema).length === 0 ? "json" : { schema };
}

/**
 * Returns the name of the tool that the model must call for JSON output. The tool's input becomes
 * the output.
 */
export function chooseOutputToolName({ tools = [] }: ChatBody): string {
  const taken = new Set(
    tools.map((tool) => (tool.type === "function" ? tool.function.name : null)),
  );
  let name = "json";
  while (taken.has(name)) name += "_";
  return name;
}
