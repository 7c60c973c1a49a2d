type Json = { readonly [name: string]: unknown };
type Content = {
  readonly "audio/mpeg"?: unknown;
  readonly "application/json"?: { readonly schema?: Json };
  readonly "text/csv"?: { readonly schema?: Json };
};
type Operation = {
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: Json;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
};

/**
 * Returns the TypeScript of an OpenAPI document: a type for each named schema, and `Calls` with the
 * query, body and success of each `METHOD path`.
 */
export function apiTypes(document: string): string {
  const { paths, components } = JSON.parse(document) as {
    paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    components: { readonly schemas: Readonly<Record<string, Json>> };
  };
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)};`,
  );
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) =>
        `  ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: ${callOf(operation)};`,
    ),
  );
  const head = "// Generated from the OpenAPI document by scripts/site/console.ts.";
  return [head, ...schemas, `export type Calls = {\n${calls.join("\n")}\n};`, ""].join("\n");
}

function callOf({ parameters = [], requestBody, responses }: Operation): string {
  const query = parameters
    .filter((parameter) => parameter.in === "query")
    .map(({ name, schema }) => `${property(name)}?: ${typeOf(schema)}`);
  const answers = Object.entries(responses)
    .filter(([status]) => status.startsWith("2"))
    .map(([, { content }]) => schemaType(content));
  const body = requestBody === undefined ? "undefined" : schemaType(requestBody.content);
  return `{ query: { ${query.join("; ")} }; body: ${body}; answer: ${union(answers)} }`;
}

function schemaType(content: Content | undefined): string {
  if (content?.["audio/mpeg"] !== undefined) return "unknown"; // a file or JSON
  const schema = (content?.["application/json"] ?? content?.["text/csv"])?.schema;
  return schema === undefined ? "unknown" : typeOf(schema);
}

function typeOf(schema: Json): string {
  const { $ref, enum: values, anyOf, oneOf, allOf } = schema;
  if (typeof $ref === "string") return $ref.split("/").at(-1) ?? "unknown";
  if ("const" in schema) return JSON.stringify(schema["const"]);
  if (Array.isArray(values)) return union(values.map((value) => JSON.stringify(value)));
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return union(choices.map((choice: Json) => typeOf(choice)));
  if (Array.isArray(allOf) && schema["type"] === undefined) return allOf.map((part: Json) => typeOf(part)).join(" & ");
  return plainType(schema);
}

function plainType(schema: Json): string {
  const { type } = schema;
  if (Array.isArray(type)) return union(type.map((one) => plainType({ ...schema, type: one })));
  if (type === "object") return objectType(schema);
  if (type === "array") return `readonly ${wrapped(typeOf((schema["items"] ?? {}) as Json))}[]`;
  if (type === "integer") return "number";
  return typeof type === "string" ? type : "unknown";
}

function objectType({ properties, required, additionalProperties }: Json): string {
  const names = new Set(Array.isArray(required) ? (required as string[]) : []);
  const fields = Object.entries((properties ?? {}) as Readonly<Record<string, Json>>).map(
    ([name, schema]) => `${property(name)}${names.has(name) ? "" : "?"}: ${typeOf(schema)}`,
  );
  if (fields.length > 0) return `{ ${fields.join("; ")} }`;
  const rest = typeof additionalProperties === "object" ? (additionalProperties as Json) : {};
  return `{ [name: string]: ${typeOf(rest)} }`;
}

function property(name: string): string {
  return /^[a-z_]\w*$/i.test(name) ? name : JSON.stringify(name);
}

function union(types: readonly string[]): string {
  return [...new Set(types)].map((type) => wrapped(type)).join(" | ");
}

function wrapped(type: string): string {
  return /^(?:\w+|"[^"]*")$/.test(type) ? type : `(${type})`;
}
