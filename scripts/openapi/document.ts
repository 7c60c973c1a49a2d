import * as z from "zod";
import type * as core from "zod/v4/core";
import { opaqueObject } from "../../src/inference/core-request.ts";
import { OPERATIONS } from "./operations.ts";
import type { Operation } from "./operation.ts";
import { error } from "./records.ts";

/** Errors that any operation may answer with, by status. */
const EVERYWHERE = ["invalid_request", "invalid_api_key", "rate_limit_exceeded", "overloaded"];
const STATUS_OF: Readonly<Record<string, number>> = {
  invalid_request: 400,
  context_length_exceeded: 400,
  previous_response_not_found: 400,
  invalid_api_key: 401,
  insufficient_balance: 402,
  key_budget_exceeded: 402,
  model_not_allowed: 403,
  organization_suspended: 403,
  key_is_limited: 403,
  role_required: 403,
  not_found: 404,
  model_not_found: 404,
  conflict: 409,
  last_owner: 409,
  balance_too_low: 409,
  too_many_keys: 409,
  too_many_webhooks: 409,
  webhook_disabled: 409,
  replay_in_progress: 409,
  too_many_secrets: 409,
  too_many_sessions: 409,
  idempotency_replay: 409,
  idempotency_in_progress: 409,
  idempotency_mismatch: 422,
  rate_limit_exceeded: 429,
  end_user_quota_exceeded: 429,
  tokens: 429,
  too_many_end_users: 429,
  upstream_error: 502,
  upstream_overloaded: 503,
  overloaded: 503,
};
type Json = Record<string, unknown>;
/** What an operation was really answered, and what it was asked with, by `METHOD path`. */
export type Examples = Readonly<
  Record<string, { readonly request?: unknown; readonly answer: unknown }>
>;

/** The OpenAPI 3.1 document of `/v1` and `/admin/v1`. */
export function openApiDocument(examples: Examples): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const operation of OPERATIONS) {
    const at = (paths[operation.path] ??= {});
    at[operation.method] = operationObject(operation, schemas, examples[operation.name]);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Turnpike",
      version: "1",
      summary: "A model gateway that speaks OpenAI's API and takes prepaid credits.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "The region that serves this document." }],
    tags: [...new Set(OPERATIONS.map(({ tag }) => tag))].map((name) => ({
      name,
      description: `Operations of the part ${name}.`,
    })),
    paths,
    components: {
      schemas,
      securitySchemes: {
        key: { type: "http", scheme: "bearer", description: "A key: `svc_sk_...`." },
        operator: { type: "http", scheme: "bearer", description: "The region's `ADMIN_TOKEN`." },
      },
    },
  };
}

function operationObject(
  operation: Operation,
  schemas: Json,
  example: Examples[string] | undefined,
): Json {
  const { path: at, tag, summary, description, roles, body, query = [] } = operation;
  const parameters = [
    ...[...at.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: "path",
      required: true,
      schema: { type: "string" },
    })),
    ...query.map(({ name, schema }) => ({ name, in: "query", required: false, schema })),
  ];
  return {
    operationId: operationIdOf(operation),
    tags: [tag],
    summary,
    description: [description, `Who may: ${roles}.`].filter(Boolean).join("\n\n"),
    security: [{ [tag === "Operator" ? "operator" : "key"]: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        required: true,
        content: json(schemaOf(body, "input", schemas), example?.request),
      },
    }),
    responses: responsesOf(operation, schemas, example?.answer),
  };
}

function operationIdOf({ method, path: at }: Operation): string {
  const words = at
    .replace(/^\//, "")
    .split("/")
    .filter((word) => word !== "v1");
  const name = words.map((word) => word.replaceAll(/[{}]/g, "").replaceAll("-", "_")).join("_");
  return `${method}_${name}`;
}

function responsesOf(operation: Operation, schemas: Json, answer: unknown): Json {
  const responses: Json = {};
  for (const [status, schema] of Object.entries(operation.answers)) {
    responses[status] = {
      description: operation.summary,
      content: json(schemaOf(schema, "output", schemas), answer),
    };
  }
  const anchors = [...EVERYWHERE, ...(operation.errors ?? [])];
  for (const anchor of anchors) {
    const status = STATUS_OF[anchor];
    if (status === undefined) throw new Error(`no status for the error ${anchor}`);
    const same = anchors.filter((other) => STATUS_OF[other] === status);
    responses[status] = {
      description: same.map((other) => `\`${other}\``).join(", "),
      content: json(schemaOf(error, "output", schemas)),
    };
  }
  return responses;
}

function json(schema: Json, example?: unknown): Json {
  return { "application/json": { schema, ...(example !== undefined && { example }) } };
}

/** A schema, with everything that has a name moved to the components. */
function schemaOf(schema: core.$ZodType, io: "input" | "output", schemas: Json): Json {
  const {
    $schema: _dialect,
    $defs,
    ...whole
  } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    reused: "inline",
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema === opaqueObject) jsonSchema.type = "object"; // zod knows its check alone
    },
  }) as Json;
  for (const [name, definition] of Object.entries(($defs as Json | undefined) ?? {})) {
    schemas[name] = definition;
  }
  const { id } = whole;
  for (const [name, definition] of Object.entries(schemas)) {
    schemas[name] = named(referring(definition));
  }
  if (typeof id !== "string") return named(referring(whole));
  schemas[id] = named(referring(whole));
  return { $ref: `#/components/schemas/${id}` };
}

/** Its JSON text, with names looked for among the components. */
function referring(schema: unknown): string {
  return JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/');
}

function named(text: string): Json {
  const { id: _name, ...schema } = JSON.parse(text) as Json;
  return schema;
}
