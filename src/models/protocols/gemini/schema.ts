import { keepExactJson } from "../../../shared/exact-json.ts";
import { isObject } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";

const WITHIN: ReadonlySet<string> = new Set(
  "items additionalProperties prefixItems anyOf oneOf allOf not".split(" "),
);
const BY_NAME: ReadonlySet<string> = new Set(
  "properties $defs definitions patternProperties".split(" "),
);

/**
 * Returns a JSON schema that Google accepts. An object with `$ref` can have only keywords that
 * start with `$` (ai.google.dev, Schema).
 */
export function geminiSchema(schema: JsonObject): JsonObject {
  const { $ref: reference } = schema;
  const entries = Object.entries(schema)
    .filter(([key]) => typeof reference !== "string" || key.startsWith("$"))
    .map(([key, value]): [string, unknown] => {
      if (BY_NAME.has(key) && isObject(value)) return [key, mapped(value)];
      return [key, WITHIN.has(key) ? inner(value) : value];
    });
  return keepExactJson(schema, Object.fromEntries(entries));
}

function inner(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inner);
  return isObject(value) ? geminiSchema(value) : value;
}

function mapped(named: JsonObject): JsonObject {
  const copies = Object.entries(named).map(([name, value]) => [name, inner(value)]);
  return keepExactJson(named, Object.fromEntries(copies));
}
