import { claudeRules } from "../../claude/claude-rules.ts";
import { cleanedSchema } from "../../claude/json-schema.ts";
import { isObject, listOf, objectOf } from "../../core/json-value.ts";
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
  const format = objectOf(body["response_format"]);
  const isJson = format["type"] === "json_object" || format["type"] === "json_schema";
  // A tool that the client names is called, whatever the answer was to be.
  if (!isJson || isNamed(body["tool_choice"])) return TEXT;
  const { schema } = objectOf(format["json_schema"]);
  if (!isObject(schema) || Object.keys(schema).length === 0) {
    return { kind: "told", words: "Answer with one JSON object and nothing else." };
  }
  if (takesSchema(upstreamId)) {
    return { kind: "schema", output: { type: "json_schema", schema: cleanedSchema(schema) } };
  }
  if (forcingOf(upstreamId) === "tool" && (schema["type"] ?? "object") === "object") {
    return { kind: "tool", schema, name: freeName(body) };
  }
  const words = `Answer with one JSON value that matches this JSON schema, and nothing else: ${JSON.stringify(schema)}`;
  return { kind: "told", words };
}

/** The name of the tool that is the answer, or null. */
export function answerTool(call: ChatCall): string | null {
  const format = answerFormat(call);
  return format.kind === "tool" ? format.name : null;
}

function isNamed(choice: unknown): boolean {
  return isObject(choice) && isObject(choice["function"]);
}

/** Bedrock's copy of the Messages API ends at 4.6, the last that takes sampling. */
function takesSchema(model: string): boolean {
  if (familyOf(model) !== "claude") return false;
  const { jsonSchema, sampling } = claudeRules(model);
  return jsonSchema === "native" && sampling;
}

/** "json", unless a tool of the client's has that name. */
function freeName(body: JsonObject): string {
  const taken = new Set(
    listOf(body["tools"]).map((tool) => objectOf(objectOf(tool)["function"])["name"]),
  );
  let name = "json";
  while (taken.has(name)) name += "_";
  return name;
}
