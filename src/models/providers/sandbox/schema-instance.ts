import { isObject, listOf, numberOf, objectOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";

const LEVELS_MAX = 64;
const SPARE_LEVELS = 4;
const WORK_MAX = 10_000;
const PARTS_PER_WORK = 100;
const MERGES_MAX = 16;
const CHARACTERS_MAX = 10_000;

/**
 * Returns a JSON value that matches a schema, or null if a bounded search finds none. The result
 * depends only on the schema and `variant`. Ignores rare keywords such as `pattern`.
 */
export function createSchemaInstance(schema: unknown, variant = 0): unknown {
  const search = { root: schema, workLeft: WORK_MAX };
  for (let levels = 0; levels <= LEVELS_MAX && search.workLeft > 0; levels++) {
    const place = { name: "text", variant, levels };
    const smallest = buildValue(search, schema, place);
    if (smallest === undefined) continue;
    return buildValue(search, schema, { ...place, levels: levels + SPARE_LEVELS }) ?? smallest;
  }
  return null;
}

type Search = { readonly root: unknown; workLeft: number };
type PropertyPlace = { readonly name: string; readonly variant: number; readonly levels: number };

function buildValue(search: Search, schema: unknown, place: PropertyPlace): unknown {
  if (place.levels < 0 || --search.workLeft < 0) return undefined;
  const { anyOf, oneOf, ...keywords } = mergeReferences(search, objectOf(schema), 0);
  if ("const" in keywords) return keywords["const"];
  const choices = listOf(keywords["enum"]);
  if (choices.length > 0) return choices[place.variant % choices.length];
  const below = { ...place, levels: place.levels - 1 };
  const branches = [...listOf(anyOf), ...listOf(oneOf)];
  search.workLeft -= branches.length / PARTS_PER_WORK;
  if (branches.length > 0) {
    return firstDefined(branches, (branch) =>
      buildValue(search, { allOf: [keywords, branch] }, below),
    );
  }
  const types = Array.isArray(keywords["type"])
    ? keywords["type"].map(String)
    : [guessType(keywords)];
  const inOrder = types.toSorted((a, b) => Number(a === "null") - Number(b === "null"));
  return firstDefined(inOrder, (type) => buildTyped(search, { ...keywords, type }, below));
}

function buildTyped(search: Search, schema: JsonObject, below: PropertyPlace): unknown {
  switch (schema["type"]) {
    case "object":
      return buildObject(search, schema, below);
    case "array":
      return buildArray(search, schema, below);
    case "integer":
    case "number":
      return buildNumber(schema, below.variant);
    case "boolean":
      return below.variant % 2 === 0;
    case "null":
      return null;
    default: {
      const text = buildString(schema, below);
      search.workLeft -= text.length / PARTS_PER_WORK;
      return text;
    }
  }
}

function buildObject(
  search: Search,
  schema: JsonObject,
  below: PropertyPlace,
): JsonObject | undefined {
  const properties = new Map(Object.entries(objectOf(schema["properties"])));
  const required = new Set(listOf(schema["required"]).map(String));
  search.workLeft -= (properties.size + required.size) / PARTS_PER_WORK;
  const wanted = required.size === 0 ? properties : required;
  const entries: (readonly [string, unknown])[] = [];
  for (const name of new Set([...properties.keys(), ...required])) {
    if (!wanted.has(name)) continue;
    search.workLeft -= name.length / PARTS_PER_WORK;
    const part = properties.get(name) ?? schema["additionalProperties"];
    const value = buildValue(search, part, { ...below, name });
    if (value !== undefined) entries.push([name, value]);
    else if (required.has(name)) return undefined;
  }
  // Unlike an assignment, `fromEntries` copies a property named `__proto__`.
  return Object.fromEntries(entries);
}

function buildArray(
  search: Search,
  schema: JsonObject,
  below: PropertyPlace,
): unknown[] | undefined {
  const { prefixItems, items } = schema;
  const prefix = listOf(prefixItems);
  const minItems = Math.max(numberOf(schema["minItems"]) ?? 0, prefix.length);
  const wanted = prefix.length === 0 && items !== false ? Math.max(minItems, 1) : minItems;
  const length = Math.min(wanted, numberOf(schema["maxItems"]) ?? Infinity);
  const values: unknown[] = [];
  for (let i = 0; i < length; i++) {
    const item = buildValue(search, prefix[i] ?? items, { ...below, variant: below.variant + i });
    if (item === undefined) return i < minItems ? undefined : values;
    values.push(item);
  }
  return values;
}

function firstDefined<T>(options: readonly T[], build: (option: T) => unknown): unknown {
  for (const option of options) {
    const value = build(option);
    if (value !== undefined) return value;
  }
  return undefined;
}

function guessType(schema: JsonObject): string {
  if (typeof schema["type"] === "string") return schema["type"];
  const has = (...keywords: string[]): boolean => keywords.some((keyword) => keyword in schema);
  if (has("properties", "required", "additionalProperties")) return "object";
  if (has("items", "prefixItems", "minItems")) return "array";
  return has("minimum", "maximum", "multipleOf") ? "number" : "string";
}

function mergeReferences(search: Search, schema: JsonObject, depth: number): JsonObject {
  const { $ref: reference, allOf, ...keywords } = schema;
  if (reference === undefined && allOf === undefined) return schema;
  if (depth > MERGES_MAX || --search.workLeft < 0) return keywords;
  const parts = [...listOf(allOf), keywords];
  if (typeof reference === "string") parts.unshift(resolveReference(search.root, reference));
  let merged: JsonObject = {};
  for (const part of parts) {
    merged = mergeSchemas(merged, mergeReferences(search, objectOf(part), depth + 1));
  }
  search.workLeft -= Object.keys(objectOf(merged["properties"])).length / PARTS_PER_WORK;
  return merged;
}

function mergeSchemas(one: JsonObject, other: JsonObject): JsonObject {
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

function resolveReference(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  let current = root;
  for (const step of reference.slice(1).split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(current)) current = current[Number(key)];
    else current = isObject(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  }
  return current;
}

function buildNumber(schema: JsonObject, variant: number): number {
  const low = Math.max(numberOf(schema["minimum"]) ?? -Infinity, exclusiveMinimum(schema));
  const high = Math.min(numberOf(schema["maximum"]) ?? Infinity, exclusiveMaximum(schema));
  const step = numberOf(schema["multipleOf"]) ?? 1;
  let first = Math.ceil(low / step);
  if (first * step <= exclusiveMinimum(schema)) first++;
  let last = Math.floor(high / step);
  if (last * step >= exclusiveMaximum(schema)) last--;
  // No multiple of `step` is between `low` and `high`.
  if (first > last) return low + (high - low) / (variant + 2);
  let index = Math.min(Math.max(Math.ceil(1 / step), first), last) + variant;
  if (index > last) {
    index = first === -Infinity ? last - variant : first + ((index - first) % (last - first + 1));
  }
  const value = Number.isInteger(step) ? index * step : Number((index * step).toPrecision(12));
  return value === 0 ? 0 : value; // Replaces -0 by 0.
}

const exclusiveMinimum = (schema: JsonObject): number =>
  numberOf(schema["exclusiveMinimum"]) ?? -Infinity;
const exclusiveMaximum = (schema: JsonObject): number =>
  numberOf(schema["exclusiveMaximum"]) ?? Infinity;

function buildString(schema: JsonObject, { name, variant }: PropertyPlace): string {
  const format = FORMATS.get(String(schema["format"]));
  if (format !== undefined) return format(variant + 1);
  const minLength = Math.min(numberOf(schema["minLength"]) ?? 0, CHARACTERS_MAX);
  const maxLength = Math.min(numberOf(schema["maxLength"]) ?? CHARACTERS_MAX, CHARACTERS_MAX);
  const characters = Array.from(variant === 0 ? name : `${name} ${variant + 1}`);
  if (characters.length < minLength) return characters.join("").padEnd(minLength, "x");
  return maxLength === 0 ? "" : characters.slice(-maxLength).join("");
}

const twoDigits = (value: number): string => String(value).padStart(2, "0");
const day = (nth: number): string => twoDigits(((nth - 1) % 31) + 1);
const FORMATS: ReadonlyMap<string, (nth: number) => string> = new Map([
  ["date-time", (nth) => `2026-01-${day(nth)}T12:00:00Z`],
  ["date", (nth) => `2026-01-${day(nth)}`],
  ["time", (nth) => `12:00:${twoDigits(nth % 60)}Z`],
  ["duration", (nth) => `P${nth}D`],
  ["email", (nth) => `user${nth}@example.com`],
  ["hostname", (nth) => `host${nth}.example.com`],
  ["ipv4", (nth) => `192.0.2.${nth % 255}`],
  ["ipv6", (nth) => `2001:db8::${nth.toString(16)}`],
  ["uri", (nth) => `https://example.com/${nth}`],
  ["url", (nth) => `https://example.com/${nth}`],
  ["uuid", (nth) => `00000000-0000-4000-8000-${nth.toString(16).padStart(12, "0")}`],
]);
