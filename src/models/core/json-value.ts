import { parseJson } from "../../shared/exact-json.ts";

export type JsonObject = { readonly [key: string]: unknown };
/** Fields whose values are not validated yet. */
export type KnownFields<Name extends string> = { readonly [N in Name]?: unknown };

/**
 * Parses a JSON object, or returns null. The result keeps the digits of numbers and the order of
 * keys.
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

export function parseStringLiteral(literal: string): string {
  return String(JSON.parse(literal));
}

/** Returns `value` if it is an object, else `{}`. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function hasTypeField<T extends KnownFields<"type">>(
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

/** Returns a copy without null and undefined fields. */
export function removeNulls(fields: object): JsonObject {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) setField(kept, name, value);
  return kept;
}

/** Returns the fields `names` that are not null or undefined. */
export function pickFields(fields: JsonObject, names: readonly string[]): JsonObject {
  const picked: Record<string, unknown> = {};
  for (const name of names) setField(picked, name, fields[name]);
  return picked;
}

const PLAIN_FIELD = { enumerable: true, configurable: true, writable: true };

function setField(target: Record<string, unknown>, name: string, value: unknown): void {
  if (value === null || value === undefined) return;
  // An assignment to `__proto__` would set the prototype.
  if (name === "__proto__") Object.defineProperty(target, name, { ...PLAIN_FIELD, value });
  else target[name] = value;
}

/** Returns `value` if it is an array, else `[]`. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns `value` if it is a string, else "". */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns `value` if it is a number, else undefined. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Reads an untyped value. Never throws. A value of an unexpected type counts as empty. */
export type ValueReader<T> = (value: unknown) => T;

/** Returns a reader of objects with these fields. */
export function createObjectReader<Fields extends Readonly<Record<string, ValueReader<unknown>>>>(
  fields: Fields,
): ValueReader<{ readonly [Name in keyof Fields]: ReturnType<Fields[Name]> }> {
  const readers = Object.entries(fields);
  // All results get the same fields in the same order, so that JavaScript engines share one object
  // layout.
  const emptyFields: Record<string, unknown> = Object.fromEntries(
    readers.map(([name]) => [name, null]),
  );
  return (value) => {
    const raw = objectOf(value);
    const read = { ...emptyFields };
    for (const [name, one] of readers) read[name] = one(raw[name]);
    return read as { readonly [Name in keyof Fields]: ReturnType<Fields[Name]> };
  };
}

/** Returns a reader of arrays of objects. */
export function createListReader<T>(one: ValueReader<T>): ValueReader<readonly T[]> {
  return (value) => listOf(value).filter(isObject).map(one);
}

/** Wraps a reader of objects. Returns null for other values. */
export function createOptionalReader<T>(reader: ValueReader<T>): ValueReader<T | null> {
  return (value) => (isObject(value) ? reader(value) : null);
}

/** Returns the value unchanged. */
export function readAnyValue(value: unknown): unknown {
  return value;
}
