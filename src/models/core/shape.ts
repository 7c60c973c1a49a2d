import { isObject, listOf, objectOf } from "./json-value.ts";

/** Reads an untyped value. Never throws. Reads a value of an unexpected type as empty. */
export type ValueReader<T> = (value: unknown) => T;

export function objectReader<Fields extends Readonly<Record<string, ValueReader<unknown>>>>(
  fields: Fields,
): ValueReader<{ readonly [Name in keyof Fields]: ReturnType<Fields[Name]> }> {
  const readers = Object.entries(fields);
  // Each result starts as a copy with all fields, so that JavaScript engines use one object layout.
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

export function listReader<T>(one: ValueReader<T>): ValueReader<readonly T[]> {
  return (value) => listOf(value).filter(isObject).map(one);
}

export function optionalReader<T>(one: ValueReader<T>): ValueReader<T | null> {
  return (value) => (isObject(value) ? one(value) : null);
}

export function anyValue(value: unknown): unknown {
  return value;
}
