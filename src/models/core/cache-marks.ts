import { isObject, listOf } from "./json-value.ts";
import type { JsonObject, KnownFields } from "./json-value.ts";

/** Reports whether to cache the prompt up to this part or tool. */
export function isCacheMarked({ cache_control: mark }: JsonObject): boolean {
  return isObject(mark) && isEphemeral(mark);
}

function isEphemeral({ type }: KnownFields<"type">): boolean {
  return type === "ephemeral";
}

/** The field that requests caching for five minutes. Caching for an hour has a different price. */
export const CACHE_MARK = { cache_control: { type: "ephemeral" } } as const;

/**
 * Returns the paths of cache marks that the provider won't receive. If `isSent`, these are only
 * lifetimes above five minutes.
 */
export function listUnsentCacheMarkPaths(
  { messages, tools }: JsonObject,
  isSent: boolean,
): readonly string[] {
  const parts = listOf(messages)
    .filter(isObject)
    .flatMap(({ content }: KnownFields<"content">) => listOf(content));
  const marked = [...parts, ...listOf(tools)].filter(isObject).filter(isCacheMarked);
  if (marked.length === 0) return [];
  if (!isSent) return ["cache_control"];
  return marked.some(hasLongLifetime) ? ["cache_control.ttl"] : [];
}

function hasLongLifetime({ cache_control: mark }: KnownFields<"cache_control">): boolean {
  const { ttl }: KnownFields<"ttl"> = isObject(mark) ? mark : {};
  return ttl !== undefined && ttl !== null && ttl !== "5m";
}
