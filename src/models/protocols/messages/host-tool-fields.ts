import type { Conversation } from "../../core/conversation.ts";
import { CACHE_MARK } from "../../core/cache-marks.ts";
import { keepExactJson } from "../../../shared/exact-json.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { FunctionTool, RequestedTools } from "../../core/tools.ts";
import type { ClaudeRules } from "../../claude/claude-rules.ts";
import type { JsonOutputMethod } from "./host-json-answer.ts";
import { claudeSchema } from "../../claude/json-schema.ts";

type ToolFields = {
  readonly tools?: readonly JsonObject[];
  readonly tool_choice?: JsonObject;
};
type Forced = { readonly isForced: boolean; readonly words: string | null };

const STRICT_TOOLS_MAX = 20;
const NO_INPUT: JsonObject = { type: "object", properties: {} };

export function claudeToolFields(
  requested: RequestedTools,
  rules: ClaudeRules,
  json: JsonOutputMethod | null,
  { turns }: Conversation,
): { readonly fields: ToolFields; readonly forced: Forced } {
  const offered = offeredTools(requested.list, rules);
  const choice = choiceOf(requested, rules);
  if (json?.by === "tool" && typeof requested.choice === "string") {
    const tool = { name: json.name, input_schema: objectSchema(json.schema) };
    const alone = requested.choice === "none" || offered.length === 0;
    return {
      fields: {
        tools: [...(alone ? [] : offered), tool],
        tool_choice: {
          ...(alone ? { type: "tool", name: json.name } : { type: "any" }),
          disable_parallel_tool_use: true,
        },
      },
      forced: { isForced: true, words: null },
    };
  }
  if (offered.length > 0) {
    return { fields: { tools: offered, ...choice.field }, forced: choice.forced };
  }
  // If a conversation has calls, the request must list their tools, even if no tool can be called.
  const called = new Set(
    turns.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === "call" ? part.name : []))),
  );
  const tools = [...called].map((name) => ({ name, input_schema: NO_INPUT }));
  const fields = tools.length === 0 ? {} : { tools, tool_choice: { type: "none" } };
  return { fields, forced: { isForced: false, words: null } };
}

function objectSchema(schema: JsonObject): JsonObject {
  return keepExactJson(schema, { ...schema, type: "object" });
}

function offeredTools(list: readonly FunctionTool[], rules: ClaudeRules): JsonObject[] {
  const strict = list.filter((tool) => tool.strict).length;
  const keepsStrict = rules.jsonSchema === "native" && strict <= STRICT_TOOLS_MAX;
  return list.map((tool) => {
    const schema = objectSchema(tool.parameters);
    const isStrict = tool.strict && keepsStrict;
    return {
      name: tool.name,
      ...(tool.description !== "" && { description: tool.description }),
      input_schema: isStrict ? claudeSchema(schema) : schema,
      ...(isStrict && { strict: true }),
      ...(tool.isMarked && CACHE_MARK),
    };
  });
}

function choiceOf(
  { choice, parallel }: RequestedTools,
  rules: ClaudeRules,
): { readonly field: ToolFields; readonly forced: Forced } {
  const free = { isForced: false, words: null };
  const one = parallel ? {} : { disable_parallel_tool_use: true };
  if (choice === "none") return { field: { tool_choice: { type: "none" } }, forced: free };
  if (choice === "auto") {
    return { field: parallel ? {} : { tool_choice: { type: "auto", ...one } }, forced: free };
  }
  const named = typeof choice === "string" ? { type: "any" } : { type: "tool", name: choice.name };
  if (rules.forcedTools) {
    return {
      field: { tool_choice: { ...named, ...one } },
      forced: { isForced: true, words: null },
    };
  }
  const words =
    typeof choice === "string"
      ? "Answer by calling one of the tools."
      : `Answer by calling the tool ${choice.name}.`;
  return {
    field: parallel ? {} : { tool_choice: { type: "auto", ...one } },
    forced: { isForced: false, words },
  };
}
