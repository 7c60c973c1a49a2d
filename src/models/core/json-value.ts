/** A JSON object of anybody's. */
export type JsonObject = { readonly [key: string]: unknown };
/** One of which these fields are read, whatever they and the rest may be. */
export type Named<Name extends string> = { readonly [N in Name]?: unknown };

/** The object that a JSON text stands for; null for anything else. */
export function parseObject(text: string | null): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text ?? "");
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
