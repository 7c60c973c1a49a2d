import type { JsonObject } from "../provider.ts";
import { isObject, listOf, objectOf } from "../json-value.ts";

/** A JSON schema with its references: answers what a part of it is, and whether an instance can end. */
export type SchemaGraph = {
  /** The schema with its `$ref` and `allOf` worked in. Same object in, same object out. */
  expand(schema: unknown): JsonObject;
  /** The alternatives of an expanded schema (`anyOf`, `oneOf`, several types), its own keywords included; none: []. */
  branches(expanded: JsonObject): readonly JsonObject[];
  /** Whether an instance of the schema can be made within `levels` levels of nesting and branching. */
  fits(schema: unknown, levels: number): boolean;
};

/** References that lead to references, and allOf in allOf: deeper than this counts as no constraint. */
const EXPANSIONS_MAX = 64;
/** Keywords, properties and branches that one schema is worth looking at: recursion can make them without end. */
const WORK_MAX = 300_000;

export function schemaGraph(root: unknown): SchemaGraph {
  const expansions = new Map<JsonObject, JsonObject>();
  const branchings = new Map<JsonObject, readonly JsonObject[]>();
  const fitting = new Map<JsonObject, Map<number, boolean>>();
  let workLeft = WORK_MAX;
  const spend = (work: number): boolean => {
    workLeft -= work;
    return workLeft >= 0;
  };

  const expandAt = (schema: JsonObject, depth: number): JsonObject => {
    const known = expansions.get(schema);
    if (known !== undefined) return known;
    if (depth > EXPANSIONS_MAX) return {};
    const { $ref: reference, allOf, ...own } = schema;
    if (typeof reference !== "string" && !Array.isArray(allOf)) {
      expansions.set(schema, schema);
      return schema;
    }
    expansions.set(schema, {}); // a schema that refers to itself alone says nothing
    const parts = listOf(allOf).filter(isObject);
    if (typeof reference === "string") parts.unshift(objectOf(resolve(root, reference)));
    let expanded: JsonObject = own;
    for (const part of parts) {
      const other = expandAt(part, depth + 1);
      if (!spend(sizeOf(expanded) + sizeOf(other))) break;
      expanded = mergeSchemas(expanded, other);
    }
    expansions.set(schema, expanded);
    return expanded;
  };
  const expand = (schema: unknown): JsonObject => expandAt(objectOf(schema), 0);

  const branches = (expanded: JsonObject): readonly JsonObject[] => {
    const known = branchings.get(expanded);
    if (known !== undefined) return known;
    const made = spend(branchesIn(expanded)) ? alternatives(expanded) : [];
    branchings.set(expanded, made);
    return made;
  };

  const fits = (schema: unknown, levels: number): boolean => {
    if (levels < 0 || !spend(1)) return false;
    const expanded = expand(schema);
    const answers = fitting.get(expanded) ?? new Map<number, boolean>();
    fitting.set(expanded, answers);
    const known = answers.get(levels);
    if (known !== undefined) return known;
    if (!spend(sizeOf(expanded))) return false;
    const options = branches(expanded);
    const answer =
      options.length > 0
        ? options.some((option) => fits(option, levels - 1))
        : needs(expanded).every((part) => fits(part, levels - 1));
    answers.set(levels, answer);
    return answer;
  };
  return { expand, branches, fits };
}

/** What a schema is about when it does not say: by the keywords it uses. */
export function typeOf(expanded: JsonObject): string {
  const type = expanded["type"];
  if (typeof type === "string") return type;
  const has = (...keywords: string[]): boolean => keywords.some((keyword) => keyword in expanded);
  if (has("properties", "required", "additionalProperties", "minProperties")) return "object";
  if (has("items", "prefixItems", "minItems")) return "array";
  if (has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")) {
    return "number";
  }
  return "string";
}

/** The parts without which an instance of an expanded schema without alternatives cannot be. */
function needs(expanded: JsonObject): readonly unknown[] {
  if ("const" in expanded || listOf(expanded["enum"]).length > 0) return [];
  const type = typeOf(expanded);
  if (type === "object") {
    const properties = new Map(Object.entries(objectOf(expanded["properties"])));
    return listOf(expanded["required"]).map((name) => properties.get(String(name)));
  }
  if (type !== "array") return [];
  const prefix = listOf(expanded["prefixItems"]);
  const least = Number(expanded["minItems"] ?? 0);
  return least > prefix.length ? [...prefix, expanded["items"]] : prefix;
}

/** How much there is to copy or to go through in a schema. */
function sizeOf(schema: JsonObject): number {
  const { properties, required, prefixItems } = schema;
  const lists = listOf(required).length + listOf(prefixItems).length;
  return Object.keys(schema).length + Object.keys(objectOf(properties)).length + lists;
}

function branchesIn(expanded: JsonObject): number {
  const { anyOf, oneOf, type } = expanded;
  return listOf(anyOf).length + listOf(oneOf).length + listOf(type).length;
}

function alternatives(expanded: JsonObject): readonly JsonObject[] {
  if ("const" in expanded || listOf(expanded["enum"]).length > 0) return [];
  const { anyOf, oneOf, type, ...rest } = expanded;
  const typed = type === undefined ? rest : { ...rest, type };
  if (listOf(anyOf).length > 0) {
    const own = oneOf === undefined ? typed : { ...typed, oneOf };
    return listOf(anyOf).map((branch) => ({ allOf: [own, objectOf(branch)] }));
  }
  if (listOf(oneOf).length > 0) {
    return listOf(oneOf).map((branch) => ({ allOf: [typed, objectOf(branch)] }));
  }
  if (!Array.isArray(type)) return [];
  const own = Object.entries(rest);
  const types = type.filter((one) => one !== "null").concat(type.includes("null") ? ["null"] : []);
  return types.map((one) => Object.fromEntries([...own, ["type", String(one)]]));
}

/** A local JSON pointer (`#`, `#/$defs/name`), or nothing: no reference is ever fetched. */
function resolve(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  let at = root;
  for (const step of reference.slice(1).split("/").slice(1)) {
    const key = decodeStep(step);
    if (Array.isArray(at)) at = at[Number(key)];
    else at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

function decodeStep(step: string): string {
  const plain = step.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

const TIGHTEN: Readonly<Record<string, (a: number, b: number) => number>> = {
  minimum: Math.max,
  exclusiveMinimum: Math.max,
  minLength: Math.max,
  minItems: Math.max,
  minProperties: Math.max,
  maximum: Math.min,
  exclusiveMaximum: Math.min,
  maxLength: Math.min,
  maxItems: Math.min,
};

/** Both schemas in one, the tighter of each bound; where two cannot be combined the second counts. */
function mergeSchemas(one: JsonObject, other: JsonObject): JsonObject {
  const merged = new Map(Object.entries(one));
  for (const [keyword, value] of Object.entries(other)) {
    merged.set(keyword, mergeKeyword(keyword, merged.get(keyword), value));
  }
  return Object.fromEntries(merged);
}

function mergeKeyword(keyword: string, one: unknown, other: unknown): unknown {
  if (one === undefined) return other;
  if (keyword === "properties") return mergeProperties(objectOf(one), objectOf(other));
  if (keyword === "required") return [...new Set([...listOf(one), ...listOf(other)])];
  if (keyword === "enum") {
    const both = listOf(one).filter((value) => listOf(other).includes(value));
    return both.length > 0 ? both : other;
  }
  const tighten = TIGHTEN[keyword];
  if (tighten !== undefined && typeof one === "number" && typeof other === "number") {
    return tighten(one, other);
  }
  return other;
}

function mergeProperties(one: JsonObject, other: JsonObject): JsonObject {
  const merged = new Map(Object.entries(one));
  for (const [name, schema] of Object.entries(other)) {
    merged.set(name, merged.has(name) ? { allOf: [merged.get(name), schema] } : schema);
  }
  return Object.fromEntries(merged);
}
