import { isObject, listOf, objectOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { ClaudeRules } from "../../claude/claude-rules.ts";

/**
 * How a model is brought to answer in JSON: told to, held to a schema, or, where it knows no schemas,
 * made to call a tool whose input is the answer. Null when any text will do.
 */
export type JsonAnswer =
  | { readonly by: "words" }
  | { readonly by: "schema"; readonly schema: JsonObject }
  | { readonly by: "tool"; readonly schema: JsonObject; readonly name: string };

/** What `response_format` of a checked chat request asks of a model. The same request gives the same tool name. */
export function jsonAnswerOf(body: JsonObject, rules: ClaudeRules): JsonAnswer | null {
  const format = objectOf(body["response_format"]);
  if (format["type"] !== "json_object" && format["type"] !== "json_schema") return null;
  const { schema } = objectOf(format["json_schema"]);
  if (!isObject(schema) || Object.keys(schema).length === 0) return { by: "words" };
  if (rules.jsonSchema === "native") return { by: "schema", schema };
  return { by: "tool", schema, name: freeName(body) };
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
