import * as z from "zod/mini";

/** So deep fields are renamed: a generation's, and those of its usage and price. */
const DEPTH = 2;

/** A value as it goes over the wire: the names of its fields in snake_case. */
export function toWire(value: unknown): unknown {
  return renamed(value, (name) =>
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  );
}

/** Reads a value that `toWire` wrote, in the names of `schema`. */
export function fromWire<T>(schema: z.ZodMiniType<T>) {
  return z.pipe(
    z.pipe(
      z.unknown(),
      z.transform((value) => renamed(value, camelCased)),
    ),
    schema,
  );
}

function camelCased(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function renamed(value: unknown, rename: (name: string) => string, depth = DEPTH): unknown {
  const isPlain = value !== null && typeof value === "object" && !Array.isArray(value);
  if (depth === 0 || !isPlain) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [rename(name), renamed(inner, rename, depth - 1)]),
  );
}
