import * as z from "zod/mini";
import { invalid, success } from "../failure.ts";
import type { Refusal, Result } from "../failure.ts";
import { WITHOUT_ZOD_MESSAGES, describeSchemaError } from "../issue-text.ts";

/**
 * Parses a body by a schema. Fails with 400 and the first problem's `param` (`messages[0].role`).
 * In the error, a schema's message follows the parameter's name.
 */
export function parseBody<T>(schema: z.core.$ZodType<T>, value: unknown): Result<T> {
  const parsed = z.safeParse(schema, value, WITHOUT_ZOD_MESSAGES);
  return parsed.success ? success(parsed.data) : refusalOf(parsed.error, value);
}

export type ObjectSchema = z.core.$ZodType & { readonly shape: object };

/**
 * Parses a body like `parseBody`, but rejects unknown fields. Ignores `readOnly` fields, so clients
 * can send back objects that they read.
 */
export function parseFields<Schema extends ObjectSchema>(
  schema: Schema,
  readOnly: readonly string[],
  value: unknown,
): Result<z.core.output<Schema>> {
  const fieldNames = typeof value === "object" && value !== null ? Object.keys(value) : [];
  const unknown = fieldNames.find(
    (name) => !Object.hasOwn(schema.shape, name) && !readOnly.includes(name),
  );
  if (unknown === undefined) return parseBody(schema, value) as Result<z.core.output<Schema>>;
  const unknownName = unknown.slice(0, 100);
  return invalid(`Unknown parameter: '${unknownName}'.`, unknownName === "" ? null : unknownName);
}

const REPEATED: readonly string[] = [];

/**
 * Parses query parameters. Fails with 400 and `param`, also for repeated parameters. Ignores
 * unknown parameters.
 */
export function parseQuery<T>(schema: z.core.$ZodType<T>, url: string): Result<T> {
  const query = new Map<string, string | readonly string[]>();
  for (const [name, text] of new URL(url).searchParams) {
    query.set(name, query.has(name) ? REPEATED : text);
  }
  return parseBody(schema, Object.fromEntries(query));
}

/** The schema of a query parameter that can't be repeated. */
export const singleValueSchema = z.string({
  error: ({ code }) => (code === "invalid_type" ? "must be given once" : undefined),
});

export function wholeNumberParameterWithDefault(
  minimum: number,
  maximum: number,
  fallback: number,
): z.ZodMiniType<number> {
  return z._default(wholeNumberParameter(minimum, maximum), fallback);
}

export function wholeNumberParameter(minimum: number, maximum: number): z.ZodMiniType<number> {
  const digits = singleValueSchema.check(z.regex(/^-?\d{1,16}$/, "must be a whole number"));
  const number = z.pipe(digits, z.transform(Number));
  return z.pipe(number, z.int().check(z.minimum(minimum), z.maximum(maximum)));
}

export const pageQuerySchema = z.object({
  limit: wholeNumberParameterWithDefault(1, 100, 50),
  offset: wholeNumberParameterWithDefault(0, 1_000_000_000, 0),
});

function refusalOf(error: z.core.$ZodError, value: unknown): Refusal {
  const { problem, param } = describeSchemaError(error, value);
  if (problem === null) return invalid(`Missing required parameter: '${param}'.`, param);
  const continuesFieldName = /^[a-z]/.test(problem);
  return invalid(
    continuesFieldName ? `${param ?? "The request body"} ${problem}.` : problem,
    param,
  );
}

export const timeParameterSchema = z.pipe(
  singleValueSchema.check(
    z.regex(
      /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/,
      "must be a time such as 2026-11-22T10:00:00Z, or a date",
    ),
    z.refine((text) => !Number.isNaN(Date.parse(text)), "must be a valid time"),
  ),
  z.transform((text) => Date.parse(text)),
);
