type Schema = Record<string, unknown>;

/**
 * Returns the reason why a value doesn't match a schema that the sandbox supports, or null if it
 * does.
 */
export function misfit(schema: unknown, value: unknown, root: unknown = schema): string | null {
  if (schema === true || schema === undefined) return null;
  if (schema === false) return "nothing is allowed here";
  const s = schema as Schema;
  const inner: Inner = (part, at) => misfit(part, at, root);
  return (
    misfitAny(s, value) ?? misfitCombined(s, value, inner, root) ?? misfitTyped(s, value, inner)
  );
}

function misfitAny(s: Schema, value: unknown): string | null {
  if ("const" in s && !same(s["const"], value)) return "not the const";
  if (Array.isArray(s["enum"]) && !s["enum"].some((one) => same(one, value))) return "not in enum";
  const types = list(s["type"]);
  if (types.length === 0 || types.some((type) => isType(String(type), value))) return null;
  return `${JSON.stringify(value)} is not ${types.join(" or ")}`;
}

function misfitCombined(s: Schema, value: unknown, inner: Inner, root: unknown): string | null {
  const parts = [...list(s["allOf"])];
  if (typeof s["$ref"] === "string") {
    const steps = s["$ref"].split("/").slice(1);
    parts.push(steps.reduce<unknown>((at, step) => (at as Schema)[step], root));
  }
  const wrong = parts.map((part) => inner(part, value)).find((why) => why !== null);
  if (wrong !== undefined) return wrong;
  const some = list(s["anyOf"]);
  if (some.length === 0 || some.some((part) => inner(part, value) === null)) return null;
  return "no anyOf fits";
}

function misfitTyped(s: Schema, value: unknown, inner: Inner): string | null {
  if (typeof value === "number") return misfitNumber(s, value);
  if (typeof value === "string") return misfitString(s, value);
  if (Array.isArray(value)) return misfitArray(s, value, inner);
  return isObject(value) ? misfitObject(s, value, inner) : null;
}

type Inner = (schema: unknown, value: unknown) => string | null;

function misfitNumber(s: Schema, value: number): string | null {
  if (value < bound(s["minimum"], -Infinity)) return `${value} is below minimum`;
  if (value > bound(s["maximum"], Infinity)) return `${value} is above maximum`;
  if (value <= bound(s["exclusiveMinimum"], -Infinity)) return `${value} is not above`;
  if (value >= bound(s["exclusiveMaximum"], Infinity)) return `${value} is not below`;
  const quotient = value / bound(s["multipleOf"], value === 0 ? 1 : value);
  return Math.abs(quotient - Math.round(quotient)) > 1e-9 ? `${value} is no multiple` : null;
}

function misfitString(s: Schema, value: string): string | null {
  const length = Array.from(value).length;
  if (length < bound(s["minLength"], 0)) return `${value} is too short`;
  if (length > bound(s["maxLength"], Infinity)) return `${value} is too long`;
  if (typeof s["pattern"] === "string" && !new RegExp(s["pattern"], "u").test(value)) {
    return `${value} does not match ${s["pattern"]}`;
  }
  const format = FORMATS[String(s["format"])];
  return format !== undefined && !format.test(value)
    ? `${value} is no ${s["format"] as string}`
    : null;
}

function misfitArray(s: Schema, value: readonly unknown[], inner: Inner): string | null {
  if (value.length < bound(s["minItems"], 0)) return "too few items";
  if (value.length > bound(s["maxItems"], Infinity)) return "too many items";
  if (
    s["uniqueItems"] === true &&
    new Set(value.map((v) => JSON.stringify(v))).size < value.length
  ) {
    return "items repeat";
  }
  const prefix = list(s["prefixItems"]);
  for (const [i, item] of value.entries()) {
    const wrong = inner(i < prefix.length ? prefix[i] : s["items"], item);
    if (wrong !== null) return `[${i}]: ${wrong}`;
  }
  return null;
}

function misfitObject(s: Schema, value: Schema, inner: Inner): string | null {
  const properties = new Map(Object.entries((s["properties"] ?? {}) as Schema));
  for (const name of list(s["required"])) {
    if (!Object.hasOwn(value, String(name))) return `${String(name)} is missing`;
  }
  for (const [name, item] of Object.entries(value)) {
    const wrong = inner(properties.get(name) ?? s["additionalProperties"], item);
    if (wrong !== null) return `${name}: ${wrong}`;
  }
  const { length } = Object.keys(value);
  if (length < bound(s["minProperties"], 0)) return "too few properties";
  return length > bound(s["maxProperties"], Infinity) ? "too many properties" : null;
}

const FORMATS: Readonly<Record<string, RegExp>> = {
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
  date: /^\d{4}-\d\d-\d\d$/,
  email: /^[^@\s]+@[^@\s]+\.[a-z]+$/,
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  uri: /^https:\/\/\S+$/,
  ipv4: /^(\d{1,3}\.){3}\d{1,3}$/,
};

function isType(type: string, value: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isObject(value);
  return type === "integer" ? Number.isInteger(value) : typeof value === type;
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function list(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined ? [] : [value];
}

function bound(value: unknown, fallback: number): number {
  return typeof value === "number" ? value : fallback;
}
