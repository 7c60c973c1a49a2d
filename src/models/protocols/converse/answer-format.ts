import { claudeRules } from "../../claude/claude-rules.ts";
import { cleanedSchema } from "../../claude/json-schema.ts";
import type { ChatBody } from "../../core/core-request.ts";
import { answerToolName, formatOf } from "../../core/prompt.ts";
import type { JsonObject, ChatCall } from "../../core/provider.ts";
import { familyOf, forcingOf } from "./models.ts";

/** How a model is brought to answer as `response_format` asks. */
export type AnswerFormat =
  | { readonly kind: "text" }
  /** By Claude's own `output_config.format`. */
  | { readonly kind: "schema"; readonly output: JsonObject }
  /** By calling a tool whose parameters are the schema; its input is given as the content. */
  | { readonly kind: "tool"; readonly schema: JsonObject; readonly name: string }
  /** By being told so. */
  | { readonly kind: "told"; readonly words: string };

const TEXT: AnswerFormat = { kind: "text" };

/**
 * The format of a checked chat request; the same request gives the same one. Claude 4.5 and 4.6 are held to
 * a schema; Bedrock refuses that for those after. Next best is a tool that must be called, which most
 * makers' models and Claude's newest cannot be made to.
 */
export function answerFormat({ body, upstreamId }: ChatCall): AnswerFormat {
  const format = formatOf(body);
  // A tool that the client names is called, whatever the answer was to be.
  if (format === "text" || isNamed(body.tool_choice)) return TEXT;
  if (format === "json") {
    return { kind: "told", words: "Answer with one JSON object and nothing else." };
  }
  const { schema } = format;
  if (takesSchema(upstreamId)) {
    return { kind: "schema", output: { type: "json_schema", schema: cleanedSchema(schema) } };
  }
  const type = schema["type"] ?? "object";
  if (forcingOf(upstreamId) === "tool" && type === "object") {
    return { kind: "tool", schema, name: answerToolName(body) };
  }
  const words = `Answer with one JSON value that matches this JSON schema, and nothing else: ${JSON.stringify(schema)}`;
  return { kind: "told", words };
}

/** The name of the tool that is the answer, or null. */
export function answerTool(call: ChatCall): string | null {
  const format = answerFormat(call);
  return format.kind === "tool" ? format.name : null;
}

function isNamed(choice: ChatBody["tool_choice"]): boolean {
  return typeof choice === "object" && choice.type === "function";
}

/** Bedrock's copy of the Messages API ends at 4.6, the last that takes sampling. */
function takesSchema(model: string): boolean {
  if (familyOf(model) !== "claude") return false;
  const { jsonSchema, sampling } = claudeRules(model);
  return jsonSchema === "native" && sampling;
}
