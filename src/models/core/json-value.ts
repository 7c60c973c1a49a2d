import { parseJson } from "../../shared/exact-json.ts";

export type JsonObject = { readonly [key: string]: unknown };
export type KnownFields<Name extends string> = { readonly [N in Name]?: unknown };

/**
 * Parses a JSON object, or returns null. Serializing the result keeps the digits of numbers and the
 * order of keys.
 */
export function parseObject(text: string | null): JsonObject | null {
  return parseObjectBy(parseJson, text);
}

/** Parses a JSON object that is never forwarded, or returns null. */
export function parsePlainObject(text: string | null): JsonObject | null {
  return parseObjectBy(JSON.parse, text);
}

function parseObjectBy(parse: (text: string) => unknown, text: string | null): JsonObject | null {
  try {
    const value = parse(text ?? "");
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

export function textOfLiteral(literal: string): string {
  return String(JSON.parse(literal));
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isTyped<T extends KnownFields<"type">>(
  value: T,
): value is T & { readonly type: string } {
  return typeof value.type === "string" && value.type !== "";
}

/**
 * Reports whether a value has at most `levels` levels of nesting. Deeper values can't be
 * serialized.
 */
export function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((part) => isShallow(part, levels - 1));
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
