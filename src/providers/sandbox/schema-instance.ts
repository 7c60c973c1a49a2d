import type { JsonObject } from "../provider.ts";
import { listOf, numberOf, objectOf } from "../json-value.ts";
import { schemaGraph, typeOf } from "./schema-graph.ts";
import type { SchemaGraph } from "./schema-graph.ts";
import { schemaNumber } from "./schema-number.ts";
import { schemaString } from "./schema-string.ts";

/** An instance deeper or larger than this is not made; a schema that demands it gets a cut, invalid one. */
const LEVELS_MAX = 64;
const VALUES_MAX = 5000;
/** Names and strings count too: as a value for every so many characters. */
const CHARACTERS_PER_VALUE = 100;
/** And what is gone through to make one: as a value for every so many properties and branches. */
const PARTS_PER_VALUE = 100;
/** How many levels beyond the least an instance may use for what is optional. */
const LEVELS_TO_SPARE = 4;

/**
 * A JSON value that fits a JSON schema, always the same one; `variant` 1, 2, ... asks for others.
 * Knows type, enum, const, properties, required, items, prefixItems, the bounds of numbers, lengths and
 * sizes, multipleOf, formats, pattern (schema-pattern.ts), anyOf and oneOf (the first branch that can
 * end), allOf and local $ref, recursive too. Not: not, if, dependent*, contains, propertyNames.
 * Objects get what is required; one that requires nothing gets all of its properties.
 */
export function instanceOf(schema: unknown, variant = 0): unknown {
  const graph = schemaGraph(schema);
  let levels = 0;
  while (levels < LEVELS_MAX && !graph.fits(schema, levels)) levels++;
  const making = { graph, valuesLeft: VALUES_MAX };
  return make(making, schema, { name: "text", variant, levels: levels + LEVELS_TO_SPARE });
}

type Making = { readonly graph: SchemaGraph; valuesLeft: number };
/** Where a value stands: the property that holds it, which of several it is, how deep it may go. */
type Place = { readonly name: string; readonly variant: number; readonly levels: number };

function make(making: Making, schema: unknown, place: Place): unknown {
  making.valuesLeft--;
  if (place.levels < 0 || making.valuesLeft < 0) return null;
  const expanded = making.graph.expand(schema);
  if ("const" in expanded) return expanded["const"];
  const choices = listOf(expanded["enum"]);
  if (choices.length > 0) return choices[place.variant % choices.length];
  const below = { ...place, levels: place.levels - 1 };
  const branches = making.graph.branches(expanded);
  making.valuesLeft -= branches.length / PARTS_PER_VALUE;
  const branch = branches.find((one) => making.graph.fits(one, below.levels)) ?? branches[0];
  return branch === undefined ? makeTyped(making, expanded, below) : make(making, branch, below);
}

function makeTyped(making: Making, expanded: JsonObject, below: Place): unknown {
  switch (typeOf(expanded)) {
    case "object":
      return makeObject(making, expanded, below);
    case "array":
      return makeArray(making, expanded, below);
    case "integer":
    case "number":
      return schemaNumber(expanded, below.variant);
    case "boolean":
      return below.variant % 2 === 0;
    case "null":
      return null;
    default:
      return makeString(making, expanded, below);
  }
}

function makeString(making: Making, schema: JsonObject, place: Place): string {
  const text = schemaString(schema, place.name, place.variant);
  making.valuesLeft -= text.length / CHARACTERS_PER_VALUE;
  return text;
}

function makeObject(making: Making, schema: JsonObject, below: Place): JsonObject {
  const properties = new Map(Object.entries(objectOf(schema["properties"])));
  const required = new Set(listOf(schema["required"]).map(String));
  making.valuesLeft -= (properties.size + required.size) / PARTS_PER_VALUE;
  const optional = [...properties.keys()].filter(
    (name) => !required.has(name) && making.graph.fits(properties.get(name), below.levels),
  );
  const least = numberOf(schema["minProperties"]) ?? 0;
  const most = numberOf(schema["maxProperties"]) ?? Infinity;
  const extra = required.size === 0 ? Math.min(most, optional.length) : least - required.size;
  const wanted = new Set([...required, ...optional.slice(0, Math.max(0, extra))]);
  const names = [...properties.keys()].filter((name) => wanted.has(name));
  names.push(...[...required].filter((name) => !properties.has(name)));
  for (let i = 1; names.length < least && i <= making.valuesLeft; i++) {
    if (!wanted.has(`key${i}`)) names.push(`key${i}`);
  }
  // Not by assignment: a property may be named __proto__.
  return Object.fromEntries(
    names.slice(0, Math.max(0, Math.floor(making.valuesLeft))).map((name) => {
      making.valuesLeft -= name.length / CHARACTERS_PER_VALUE;
      const value = properties.get(name) ?? schema["additionalProperties"];
      return [name, make(making, value, { ...below, name })];
    }),
  );
}

function makeArray(making: Making, schema: JsonObject, below: Place): unknown[] {
  const prefix = listOf(schema["prefixItems"]);
  const items = schema["items"];
  const one = prefix.length === 0 && items !== false && making.graph.fits(items, below.levels);
  const least = Math.max(numberOf(schema["minItems"]) ?? 0, prefix.length, one ? 1 : 0);
  const length = Math.min(least, numberOf(schema["maxItems"]) ?? Infinity);
  const made: unknown[] = [];
  for (let i = 0; i < length && making.valuesLeft > 0; i++) {
    made.push(make(making, prefix[i] ?? items, { ...below, variant: below.variant + i }));
  }
  return made;
}
