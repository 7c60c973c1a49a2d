import { isObject, listOf, objectOf } from "./json-value.ts";

/**
 * Reads a value of somebody else's JSON. It never throws: what has another shape than asked for reads as empty. A
 * wire says once, as a shape, what it reads of a message, and has its fields typed from there on.
 */
export type FieldReader<T> = (value: unknown) => T;

/** The named fields of an object, each by its reader. */
export function shape<Fields extends Readonly<Record<string, FieldReader<unknown>>>>(
  fields: Fields,
): FieldReader<{ readonly [Name in keyof Fields]: ReturnType<Fields[Name]> }> {
  const readers = Object.entries(fields);
  // What is read begins as a copy of one object that has every field: engines give those one layout.
  const empty: Record<string, unknown> = Object.fromEntries(readers.map(([name]) => [name, null]));
  return (value) => {
    const raw = objectOf(value);
    const read = { ...empty };
    for (const [name, one] of readers) read[name] = one(raw[name]);
    return read as { readonly [Name in keyof Fields]: ReturnType<Fields[Name]> };
  };
}

/** The objects of a list. */
export function list<T>(one: FieldReader<T>): FieldReader<readonly T[]> {
  return (value) => listOf(value).filter(isObject).map(one);
}

/** Null where there is no object. */
export function optional<T>(one: FieldReader<T>): FieldReader<T | null> {
  return (value) => (isObject(value) ? one(value) : null);
}

/** A value as it came, to be looked at by whoever reads it. */
export function asIs(value: unknown): unknown {
  return value;
}
