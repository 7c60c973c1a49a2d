import { copyExactJson } from "../../shared/exact-json.ts";
import { isObject, listOf, textOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/provider.ts";

const UNCHANGED_KEYWORDS = [
  "$ref",
  "const",
  "default",
  "description",
  "enum",
  "required",
  "title",
  "type",
];
const FORMATS: ReadonlySet<string> = new Set(
  "date-time time date duration email hostname uri ipv4 ipv6 uuid".split(" "),
);

/**
 * Converts a schema for Claude's structured outputs (platform.claude.com, JSON schema limitations).
 * Omits unsupported bounds, replaces `oneOf` by `anyOf`, and forbids additional properties.
 */
export function toClaudeSchema(schema: JsonObject): JsonObject {
  const converted: Record<string, unknown> = {};
  for (const key of UNCHANGED_KEYWORDS) if (schema[key] !== undefined) converted[key] = schema[key];
  if (FORMATS.has(textOf(schema["format"]))) converted["format"] = schema["format"];
  for (const key of ["properties", "$defs", "definitions"]) {
    const schemas = schema[key];
    if (isObject(schemas)) converted[key] = convertByName(schemas);
  }
  if (isObject(schema["items"])) converted["items"] = toClaudeSchema(schema["items"]);
  const choices = listOf(schema["anyOf"] ?? schema["oneOf"]);
  if (choices.length > 0) converted["anyOf"] = choices.filter(isObject).map(toClaudeSchema);
  const parts = listOf(schema["allOf"]);
  if (parts.length > 0) converted["allOf"] = parts.filter(isObject).map(toClaudeSchema);
  if (isObjectSchema(schema)) converted["additionalProperties"] = false;
  return copyExactJson(schema, converted);
}

function convertByName(schemas: JsonObject): JsonObject {
  // Unlike an assignment, `fromEntries` copies a property named `__proto__`.
  const copy = Object.fromEntries(
    Object.entries(schemas).map(([name, value]) => [
      name,
      isObject(value) ? toClaudeSchema(value) : value,
    ]),
  );
  return copyExactJson(schemas, copy);
}

function isObjectSchema({ type, properties }: JsonObject): boolean {
  return type === "object" || listOf(type).includes("object") || isObject(properties);
}
