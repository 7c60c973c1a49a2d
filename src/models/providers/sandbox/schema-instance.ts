import { isObject, listOf, numberOf, objectOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";

const LEVELS_MAX = 64;
const LEVELS_TO_SPARE = 4;
const WORK_MAX = 10_000;
const PARTS_PER_WORK = 100;
const MERGES_MAX = 16;
const CHARACTERS_MAX = 10_000;

/**
 * Returns a JSON value that matches a schema, or null if a bounded search finds none. The result
 * depends only on the schema and `variant`. Ignores rare keywords such as `pattern`.
 */
export function schemaInstance(schema: unknown, variant = 0): unknown {
  const making = { root: schema, workLeft: WORK_MAX };
  for (let levels = 0; levels <= LEVELS_MAX && making.workLeft > 0; levels++) {
    const place = { name: "text", variant, levels };
    const least = make(making, schema, place);
    if (least === undefined) continue;
    return make(making, schema, { ...place, levels: levels + LEVELS_TO_SPARE }) ?? least;
  }
  return null;
}

type Making = { readonly root: unknown; workLeft: number };
type PropertyPlace = { readonly name: string; readonly variant: number; readonly levels: number };

function make(making: Making, schema: unknown, place: PropertyPlace): unknown {
  if (place.levels < 0 || --making.workLeft < 0) return undefined;
  const { anyOf, oneOf, ...own } = merged(making, objectOf(schema), 0);
  if ("const" in own) return own["const"];
  const choices = listOf(own["enum"]);
  if (choices.length > 0) return choices[place.variant % choices.length];
  const below = { ...place, levels: place.levels - 1 };
  const branches = [...listOf(anyOf), ...listOf(oneOf)];
  making.workLeft -= branches.length / PARTS_PER_WORK;
  if (branches.length > 0) {
    return firstOf(branches, (branch) => make(making, { allOf: [own, branch] }, below));
  }
  const types = Array.isArray(own["type"]) ? own["type"].map(String) : [typeOf(own)];
  const inOrder = types.toSorted((a, b) => Number(a === "null") - Number(b === "null"));
  return firstOf(inOrder, (type) => makeTyped(making, { ...own, type }, below));
}

function makeTyped(making: Making, schema: JsonObject, below: PropertyPlace): unknown {
  switch (schema["type"]) {
    case "object":
      return makeObject(making, schema, below);
    case "array":
      return makeArray(making, schema, below);
    case "integer":
    case "number":
      return numberFor(schema, below.variant);
    case "boolean":
      return below.variant % 2 === 0;
    case "null":
      return null;
    default: {
      const text = stringFor(schema, below);
      making.workLeft -= text.length / PARTS_PER_WORK;
      return text;
    }
  }
}

function makeObject(
  making: Making,
  schema: JsonObject,
  below: PropertyPlace,
): JsonObject | undefined {
  const properties = new Map(Object.entries(objectOf(schema["properties"])));
  const required = new Set(listOf(schema["required"]).map(String));
  making.workLeft -= (properties.size + required.size) / PARTS_PER_WORK;
  const wanted = required.size === 0 ? properties : required;
  const entries: (readonly [string, unknown])[] = [];
  for (const name of new Set([...properties.keys(), ...required])) {
    if (!wanted.has(name)) continue;
    making.workLeft -= name.length / PARTS_PER_WORK;
    const part = properties.get(name) ?? schema["additionalProperties"];
    const value = make(making, part, { ...below, name });
    if (value !== undefined) entries.push([name, value]);
    else if (required.has(name)) return undefined;
  }
  return Object.fromEntries(entries); // unlike an assignment, it copies a property named __proto__
}

function makeArray(
  making: Making,
  schema: JsonObject,
  below: PropertyPlace,
): unknown[] | undefined {
  const { prefixItems, items } = schema;
  const prefix = listOf(prefixItems);
  const least = Math.max(numberOf(schema["minItems"]) ?? 0, prefix.length);
  const wanted = prefix.length === 0 && items !== false ? Math.max(least, 1) : least;
  const length = Math.min(wanted, numberOf(schema["maxItems"]) ?? Infinity);
  const made: unknown[] = [];
  for (let i = 0; i < length; i++) {
    const item = make(making, prefix[i] ?? items, { ...below, variant: below.variant + i });
    if (item === undefined) return i < least ? undefined : made;
    made.push(item);
  }
  return made;
}

function firstOf<T>(options: readonly T[], made: (option: T) => unknown): unknown {
  for (const option of options) {
    const value = made(option);
    if (value !== undefined) return value;
  }
  return undefined;
}

function typeOf(schema: JsonObject): string {
  if (typeof schema["type"] === "string") return schema["type"];
  const has = (...keywords: string[]): boolean => keywords.some((keyword) => keyword in schema);
  if (has("properties", "required", "additionalProperties")) return "object";
  if (has("items", "prefixItems", "minItems")) return "array";
  return has("minimum", "maximum", "multipleOf") ? "number" : "string";
}

function merged(making: Making, schema: JsonObject, depth: number): JsonObject {
  const { $ref: reference, allOf, ...own } = schema;
  if (reference === undefined && allOf === undefined) return schema;
  if (depth > MERGES_MAX || --making.workLeft < 0) return own;
  const parts = [...listOf(allOf), own];
  if (typeof reference === "string") parts.unshift(resolve(making.root, reference));
  let whole: JsonObject = {};
  for (const part of parts) whole = both(whole, merged(making, objectOf(part), depth + 1));
  making.workLeft -= Object.keys(objectOf(whole["properties"])).length / PARTS_PER_WORK;
  return whole;
}

function both(one: JsonObject, other: JsonObject): JsonObject {
  const { properties, required } = one;
  return {
    ...one,
    ...other,
    ...(isObject(properties) && {
      properties: { ...properties, ...objectOf(other["properties"]) },
    }),
    ...(Array.isArray(required) && { required: [...required, ...listOf(other["required"])] }),
  };
}

function resolve(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  let at = root;
  for (const step of reference.slice(1).split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(at)) at = at[Number(key)];
    else at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

function numberFor(schema: JsonObject, variant: number): number {
  const low = Math.max(numberOf(schema["minimum"]) ?? -Infinity, above(schema));
  const high = Math.min(numberOf(schema["maximum"]) ?? Infinity, under(schema));
  const step = numberOf(schema["multipleOf"]) ?? 1;
  let first = Math.ceil(low / step);
  if (first * step <= above(schema)) first++;
  let last = Math.floor(high / step);
  if (last * step >= under(schema)) last--;
  if (first > last) return low + (high - low) / (variant + 2); // no multiple of `step` is between the two
  let index = Math.min(Math.max(Math.ceil(1 / step), first), last) + variant;
  if (index > last) {
    index = first === -Infinity ? last - variant : first + ((index - first) % (last - first + 1));
  }
  const value = Number.isInteger(step) ? index * step : Number((index * step).toPrecision(12));
  return value === 0 ? 0 : value; // replaces -0
}

const above = (schema: JsonObject): number => numberOf(schema["exclusiveMinimum"]) ?? -Infinity;
const under = (schema: JsonObject): number => numberOf(schema["exclusiveMaximum"]) ?? Infinity;

function stringFor(schema: JsonObject, { name, variant }: PropertyPlace): string {
  const format = FORMATS.get(String(schema["format"]));
  if (format !== undefined) return format(variant + 1);
  const least = Math.min(numberOf(schema["minLength"]) ?? 0, CHARACTERS_MAX);
  const most = Math.min(numberOf(schema["maxLength"]) ?? CHARACTERS_MAX, CHARACTERS_MAX);
  const characters = Array.from(variant === 0 ? name : `${name} ${variant + 1}`);
  if (characters.length < least) return characters.join("").padEnd(least, "x");
  return most === 0 ? "" : characters.slice(-most).join("");
}

const two = (value: number): string => String(value).padStart(2, "0");
const day = (nth: number): string => two(((nth - 1) % 31) + 1);
const FORMATS: ReadonlyMap<string, (nth: number) => string> = new Map([
  ["date-time", (nth) => `2026-01-${day(nth)}T12:00:00Z`],
  ["date", (nth) => `2026-01-${day(nth)}`],
  ["time", (nth) => `12:00:${two(nth % 60)}Z`],
  ["duration", (nth) => `P${nth}D`],
  ["email", (nth) => `user${nth}@example.com`],
  ["hostname", (nth) => `host${nth}.example.com`],
  ["ipv4", (nth) => `192.0.2.${nth % 255}`],
  ["ipv6", (nth) => `2001:db8::${nth.toString(16)}`],
  ["uri", (nth) => `https://example.com/${nth}`],
  ["url", (nth) => `https://example.com/${nth}`],
  ["uuid", (nth) => `00000000-0000-4000-8000-${nth.toString(16).padStart(12, "0")}`],
]);
