import { listUnsentCacheMarkPaths } from "./cache-marks.ts";
import { isObject, objectOf, textOf } from "./json-value.ts";
import type { JsonObject, ProviderCall } from "./provider.ts";

/** The dotted paths in a protocol's body that contain each field of a chat request. */
export type SentFieldPaths = Readonly<Record<string, readonly string[]>>;

/**
 * Fields never reported as dropped. The adapter sets or rejects these fields, or they have no
 * effect.
 */
const UNREPORTED_FIELDS: ReadonlySet<string> = new Set([
  "encoding_format",
  "function_call",
  "functions",
  "input",
  "max_completion_tokens",
  "max_tokens",
  "messages",
  "modalities",
  "model",
  "n",
  "response_format",
  "service_tier",
  "store",
  "stream",
  "stream_options",
  "tool_choice",
  "tools",
  "user",
]);

/** Reports the client's fields that are absent from the body `sent`. */
export function reportDroppedFields(
  call: ProviderCall,
  sent: JsonObject,
  paths: SentFieldPaths,
  sendsMarks = false,
): void {
  if (call.onDropped === undefined) return;
  reportUnsentFields(
    call,
    (field) => (paths[field] ?? []).some((path) => hasPath(sent, path)),
    sendsMarks,
  );
}

/** Reports the client's fields that the provider doesn't get. */
export function reportUnsentFields(
  { body, onDropped }: ProviderCall,
  isSent: (field: string) => boolean,
  sendsMarks = false,
): void {
  if (onDropped === undefined) return;
  const undeliveredFields = Object.keys(body).filter(
    (field) => !UNREPORTED_FIELDS.has(field) && isRequested(body, field) && !isSent(field),
  );
  onDropped([...undeliveredFields, ...listUnsentCacheMarkPaths(body, sendsMarks)]);
}

function isRequested(body: JsonObject, field: string): boolean {
  const value = body[field];
  if (field === PARALLEL_TOOL_CALLS) return value === false && hasTools(body);
  if (value === null || value === undefined || value === false) return false;
  if (field === "stop") return [value].flat().some((stop) => textOf(stop).trim() !== "");
  if (field === "reasoning_effort") return value !== "none";
  if (NO_EFFECT_AT_ZERO.has(field)) return value !== 0;
  return !isObject(value) || Object.keys(value).length > 0;
}

const PARALLEL_TOOL_CALLS = "parallel_tool_calls";
const NO_EFFECT_AT_ZERO: ReadonlySet<string> = new Set([
  "frequency_penalty",
  "presence_penalty",
  "top_logprobs",
]);

function hasTools({ tools }: JsonObject): boolean {
  return Array.isArray(tools) && tools.length > 0;
}

function hasPath(sent: JsonObject, path: string): boolean {
  let at: unknown = sent;
  for (const key of path.split(".")) at = objectOf(at)[key];
  return at !== undefined && at !== null;
}
