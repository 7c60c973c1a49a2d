export type Json = { readonly [name: string]: unknown };
/** A field of a body or response. `path` is its place, such as `error.code` or `data[].id`. */
export type FieldRow = {
  readonly path: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly words: string;
};

const DEEP = 6;
const BIG = 9e15;

/**
 * Returns every field of a schema in order, including nested ones. Follows recursive schemas once.
 */
export function fieldsOf(schema: Json, schemas: Readonly<Record<string, Json>>): FieldRow[] {
  const rows = new Map<string, FieldRow>();
  const walk = (given: Json, path: string, seen: readonly string[]): void => {
    const named = typeof given["$ref"] === "string" ? given["$ref"] : "";
    if (seen.includes(named) || seen.length > DEEP) return;
    const one = resolveReference(given, schemas);
    const within = named === "" ? seen : [...seen, named];
    for (const branch of branchesOf(one)) walk(branch, path, within);
    const items = one["items"];
    if (isJson(items)) walk(items, `${path}[]`, within);
    const required = new Set(one["required"] as readonly string[] | undefined);
    for (const [name, field] of Object.entries(propertiesOf(one))) {
      const at = path === "" ? name : `${path}.${name}`;
      const is = resolveReference(field, schemas);
      if (!rows.has(at)) {
        rows.set(at, {
          path: at,
          type: typeOf(is, schemas),
          isRequired: required.has(name),
          words: wordsOf(is, schemas),
        });
      }
      walk(field, at, within);
    }
  };
  walk(schema, "", []);
  return [...rows.values()];
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function resolveReference(schema: Json, schemas: Readonly<Record<string, Json>>): Json {
  const { $ref, ...own } = schema;
  if (typeof $ref !== "string") return schema;
  return { ...schemas[$ref.split("/").at(-1) ?? ""], ...own };
}

function propertiesOf(schema: Json): Readonly<Record<string, Json>> {
  return (schema["properties"] ?? {}) as Readonly<Record<string, Json>>;
}

function branchesOf(schema: Json): readonly Json[] {
  return ["anyOf", "oneOf", "allOf"].flatMap((word) => (schema[word] ?? []) as readonly Json[]);
}

function typeOf(given: Json, schemas: Readonly<Record<string, Json>>): string {
  const schema = resolveReference(given, schemas);
  const own = [schema["type"] ?? []].flat() as string[];
  const types = [
    ...own.map((type) => (type === "array" ? `list${ofItems(schema, schemas)}` : type)),
    ...branchesOf(schema).flatMap((branch) => typeOf(branch, schemas).split(" or ")),
    ...("const" in schema ? [JSON.stringify(schema["const"])] : []),
  ];
  return [...new Set(types)].filter(Boolean).join(" or ") || "any";
}

function ofItems(schema: Json, schemas: Readonly<Record<string, Json>>): string {
  const items = schema["items"];
  return isJson(items) ? ` of ${typeOf(items, schemas).replaceAll(" or ", "/")}` : "";
}

/** Returns its values, bounds, default and description. */
function wordsOf(given: Json, schemas: Readonly<Record<string, Json>>): string {
  const schema = resolveReference(given, schemas);
  const { minimum, maximum, minLength, maxLength, maxItems, description } = schema;
  const values = (schema["enum"] ?? []) as readonly unknown[];
  const own = [
    values.length > 0 ? values.map((value) => String(value)).join(", ") : "",
    bounds(minimum, maximum, ""),
    bounds(minLength, maxLength, " characters"),
    typeof maxItems === "number" ? `at most ${maxItems}` : "",
    schema["default"] === undefined ? "" : `${JSON.stringify(schema["default"])} unless given`,
  ];
  const more = branchesOf(schema).map((branch) => wordsOf(branch, schemas));
  const constraints = [...new Set([...own, ...more])].filter(Boolean).join("; ");
  const meaning = typeof description === "string" ? description : "";
  return [meaning, constraints].filter(Boolean).join(" ").replaceAll("|", "\\|").replaceAll("\n", " ");
}

function bounds(least: unknown, most: unknown, unit: string): string {
  const low = typeof least === "number" && Math.abs(least) < BIG ? least : undefined;
  const high = typeof most === "number" && Math.abs(most) < BIG ? most : undefined;
  if (low === undefined && high === undefined) return "";
  if (high === undefined) return `${low} or more${unit}`;
  return low === undefined ? `at most ${high}${unit}` : `${low} to ${high}${unit}`;
}
