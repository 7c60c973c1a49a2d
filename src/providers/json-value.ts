import type { JsonObject } from "./provider.ts";

/** The object that a JSON text stands for; null for anything else. */
export function parseObject(text: string | null): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Reading of untyped JSON: what has another shape than asked for reads as empty. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
