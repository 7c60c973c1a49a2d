import { parseJson } from "../../shared/exact-json.ts";

/** A JSON object of anybody's. */
export type JsonObject = { readonly [key: string]: unknown };
/** One of which these fields are read, whatever they and the rest may be. */
export type Named<Name extends string> = { readonly [N in Name]?: unknown };

/** Returns the object that a JSON text represents, or null. Written again, it keeps the digits and key order of the text. */
export function parseObject(text: string | null): JsonObject | null {
  return parseObjectBy(parseJson, text);
}

/** Returns the same object for data that is never forwarded, such as vectors. */
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

/** The text that a JSON string literal stands for. */
export function literalText(literal: string): string {
  return String(JSON.parse(literal));
}

/** Reading of untyped JSON: what has another shape than asked for reads as empty. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reports whether an object names its type. */
export function isTyped<T extends Named<"type">>(value: T): value is T & { readonly type: string } {
  return typeof value.type === "string" && value.type !== "";
}

/** Whether a value nests no deeper than so many objects and lists; what nests by the thousand cannot be written again. */
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

/** The number, or undefined for anything else. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
