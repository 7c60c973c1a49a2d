import type * as core from "zod/v4/core";
import { headerComponents, SharedErrors, responsesOf } from "./responses.ts";
import { operationIdOf } from "./links.ts";
import { OPERATIONS } from "./operations.ts";
import type { Operation } from "./operation.ts";
import { error, messagesError } from "./error-records.ts";
import { jsonSchema } from "./schemas.ts";
import type { Json } from "./schemas.ts";

/** Recorded requests and responses by `METHOD path`. */
type Examples = Readonly<Record<string, { readonly request?: unknown; readonly answer: unknown }>>;

/** Returns the OpenAPI 3.1 document of `/v1` and `/admin/v1`. */
export function openApiDocument(examples: Examples): Json {
  const schemas: Json = {};
  const refusals = new SharedErrors();
  const paths: Record<string, Json> = {};
  for (const operation of OPERATIONS) {
    const at = (paths[operation.path] ??= {});
    at[operation.method] = operationObject(
      operation,
      { schemas, refusals },
      examples[operation.name],
    );
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Turnpike",
      version: "1",
      summary:
        "A model gateway with prepaid credits that is compatible with OpenAI's and Anthropic's APIs.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "The region that serves this document." }],
    tags: [...new Set(OPERATIONS.map(({ tag }) => tag))].map((name) => ({
      name,
      description: `Operations of the task ${name}.`,
    })),
    paths,
    components: {
      schemas,
      responses: refusals.components,
      headers: headerComponents(JSON.stringify([paths, refusals.components])),
      securitySchemes: {
        key: { type: "http", scheme: "bearer", description: "A key: `svc_sk_...`." },
        apiKey: {
          type: "apiKey",
          in: "header",
          name: "x-api-key",
          description: "A key in the header that Anthropic's clients use.",
        },
        session: {
          type: "apiKey",
          in: "cookie",
          name: "__Host-turnpike-eu",
          description:
            "A session of the console, with `-us` in the US. Only the console's page can send it.",
        },
        operator: { type: "http", scheme: "bearer", description: "The region's `ADMIN_TOKEN`." },
      },
    },
  };
}

const SECURITY: Readonly<Record<string, readonly Json[]>> = {
  Operator: [{ operator: [] }],
  People: [{ session: [] }],
};

function operationObject(
  operation: Operation,
  { schemas, refusals }: { readonly schemas: Json; readonly refusals: SharedErrors },
  example: Examples[string] | undefined,
): Json {
  const { tag, summary, description, roles, body, events } = operation;
  const parameters = parametersOf(operation);
  const parts = {
    of: (status: number) => schemaOf(operation.answers[status], "output", schemas),
    events: events === undefined ? null : schemaOf(events, "output", schemas),
    error: schemaOf(error, "output", schemas),
    messagesError: schemaOf(messagesError, "output", schemas),
    refusals,
  };
  return {
    operationId: operationIdOf(operation),
    tags: [tag],
    summary,
    description: [description, `Allowed: ${roles}.`].filter(Boolean).join("\n\n"),
    security: SECURITY[tag] ?? [{ key: [] }, { apiKey: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        required: operation.isBodyOptional !== true,
        content: contentOf(
          operation,
          bodyOf(operation, schemaOf(body, "input", schemas)),
          example?.request,
        ),
      },
    }),
    responses: responsesOf(operation, parts, example?.answer),
  };
}

function parametersOf({ path: at, query = [], headers = [] }: Operation): object[] {
  return [
    ...[...at.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: "path",
      required: true,
      schema: { type: "string", minLength: 1 },
    })),
    ...query.map(({ name, schema }) => ({ name, in: "query", required: false, schema })),
    ...headers,
  ];
}

/**
 * Returns a request body. Bodies of our own API can't have fields that their schema lacks. In
 * bodies of other APIs, null means absent.
 */
function bodyOf({ isStrict, isPaid }: Operation, schema: Json): Json {
  if (isStrict) return { ...schema, additionalProperties: false };
  const { properties = {}, required = [] } = schema as {
    properties?: Readonly<Record<string, Json>>;
    required?: readonly string[];
  };
  if (!isPaid) return schema;
  const entries = Object.entries(properties).map(([name, field]) => {
    return [name, required.includes(name) ? field : nullable(field)];
  });
  return { ...schema, properties: Object.fromEntries(entries) as Json };
}

function nullable(schema: Json): Json {
  const { type, anyOf } = schema;
  const choices = Array.isArray(anyOf) ? (anyOf as Json[]) : [schema];
  if (choices.some((one) => one["type"] === "null")) return schema;
  if (typeof type === "string" && !("enum" in schema) && !("const" in schema)) {
    return { ...schema, type: [type, "null"] };
  }
  return { anyOf: [...choices, { type: "null" }] };
}

function contentOf({ takesForms }: Operation, schema: Json, example: unknown): Json {
  const form = takesForms === true && { "multipart/form-data": { schema } };
  return { ...form, "application/json": { schema, ...(example !== undefined && { example }) } };
}

/** Returns a schema, and moves named parts to the components. */
function schemaOf(schema: core.$ZodType | undefined, io: "input" | "output", schemas: Json): Json {
  if (schema === undefined) return {};
  const { $defs, ...whole } = jsonSchema(schema, io);
  for (const [name, definition] of Object.entries(($defs as Json | undefined) ?? {})) {
    schemas[name] = withoutId(toReferences(definition));
  }
  const { id } = whole;
  if (typeof id !== "string") return withoutId(toReferences(whole));
  schemas[id] = withoutId(toReferences(whole));
  return { $ref: `#/components/schemas/${id}` };
}

/** Returns a schema as JSON with references to components. */
function toReferences(schema: unknown): string {
  return JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/');
}

function withoutId(text: string): Json {
  const { id: _name, ...schema } = JSON.parse(text) as Json;
  return schema;
}
