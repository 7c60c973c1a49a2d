import { claudeRules } from "../../claude/claude-rules.ts";
import { claudeSchema } from "../../claude/json-schema.ts";
import type { ChatBody } from "../../core/core-request.ts";
import { nameOfOutputTool, outputFormatOf } from "../../core/prompt.ts";
import type { JsonObject, ChatCall } from "../../core/provider.ts";
import { bedrockFamilyOf, toolForcingOf } from "./models.ts";

export type ConverseOutputFormat =
  | { readonly kind: "text" }
  | { readonly kind: "schema"; readonly output: JsonObject }
  /** The model must call a tool whose parameters are the schema. Its input becomes the content. */
  | { readonly kind: "tool"; readonly schema: JsonObject; readonly name: string }
  | { readonly kind: "told"; readonly words: string };

const TEXT_FORMAT: ConverseOutputFormat = { kind: "text" };

/**
 * Returns the way to request the output format. Bedrock accepts a schema only for Claude 4.5 and
 * 4.6. Most models and the newest Claude models can't be forced to call a tool.
 */
export function converseOutputFormat({ body, upstreamId }: ChatCall): ConverseOutputFormat {
  const format = outputFormatOf(body);
  if (format === "text" || isNamedTool(body.tool_choice)) return TEXT_FORMAT;
  if (format === "json") {
    return { kind: "told", words: "Answer with one JSON object and nothing else." };
  }
  const { schema } = format;
  if (acceptsSchema(upstreamId)) {
    return { kind: "schema", output: { type: "json_schema", schema: claudeSchema(schema) } };
  }
  const type = schema["type"] ?? "object";
  if (toolForcingOf(upstreamId) === "tool" && type === "object") {
    return { kind: "tool", schema, name: nameOfOutputTool(body) };
  }
  const words = `Answer with one JSON value that matches this JSON schema, and nothing else: ${JSON.stringify(schema)}`;
  return { kind: "told", words };
}

export function answerToolName(call: ChatCall): string | null {
  const format = converseOutputFormat(call);
  return format.kind === "tool" ? format.name : null;
}

function isNamedTool(choice: ChatBody["tool_choice"]): boolean {
  return typeof choice === "object" && choice.type === "function";
}

function acceptsSchema(model: string): boolean {
  if (bedrockFamilyOf(model) !== "claude") return false;
  const { jsonSchema, acceptsSampling: sampling } = claudeRules(model);
  return jsonSchema === "native" && sampling;
}
