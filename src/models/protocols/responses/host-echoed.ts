import { utf8Bytes } from "../../../shared/tokens.ts";
import { JSON_BYTES_MAX } from "../../core/response-size.ts";
import { isObject } from "../../core/json-value.ts";
import type { JsonObject, ProviderFailure } from "../../core/provider.ts";

/** Maximum bytes of the fields that a response repeats. Half exceeds every context window. */
const ECHO_BYTES_MAX = JSON_BYTES_MAX / 4;
const INDENT = 2;

/** Returns a failure if the response would repeat too much of the request besides `input`. */
export function echoTooLarge(request: JsonObject): ProviderFailure | null {
  const sizes = Object.entries(request).map(([field, value]) => ({
    field,
    bytes: field === "input" ? 0 : indentedJsonBytes(value, INDENT),
  }));
  if (sizes.reduce((sum, { bytes }) => sum + bytes, 0) <= ECHO_BYTES_MAX) return null;
  const { field } = sizes.reduce((largest, size) => (size.bytes > largest.bytes ? size : largest));
  const limit = `${ECHO_BYTES_MAX / 1024 / 1024} MB`;
  return {
    kind: "refused",
    reason: "echo_too_large",
    message: `The response would repeat this field, which is longer than the limit of ${limit}. Shorten it, or use a stream.`,
    param: field === "text" ? "response_format" : field,
  };
}

function indentedJsonBytes(value: unknown, indent: number): number {
  if (typeof value === "string") return utf8Bytes(JSON.stringify(value));
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return String(value).length;
  const entries = Object.entries(value);
  if (entries.length === 0) return 2;
  let bytes = indent + 3;
  for (const [key, inner] of entries) {
    bytes += indent + INDENT + 2 + indentedJsonBytes(inner, indent + INDENT);
    if (!isList) bytes += utf8Bytes(JSON.stringify(key)) + 2;
  }
  return bytes;
}
