import * as z from "zod/mini";
import { invalid, success } from "../failure.ts";
import type { Refusal, Result } from "../failure.ts";
import { OUR_WORDS, describeError } from "../issue-text.ts";

/**
 * A body that has the schema's shape, or a 400 for the first thing that is wrong, with `param` as
 * OpenAI writes it (`messages[0].role`). A message given to a schema continues the parameter's name:
 * `z.regex(..., "must be lowercase")`.
 */
export function parseBody<T>(schema: z.core.$ZodType<T>, value: unknown): Result<T> {
  const parsed = z.safeParse(schema, value, OUR_WORDS);
  return parsed.success ? success(parsed.data) : refusal(parsed.error, value);
}

/** An object's schema whose fields are all there is to a resource that a client may change. */
export type FieldsSchema = z.core.$ZodType & { readonly shape: object };

/**
 * As `parseBody`, for a resource of ours: a field that the resource does not have is a 400 with `param`.
 * Those that it has but nobody may set (`readOnly`) are taken and left out, so that a client may send back
 * what it read.
 */
export function parseFields<Schema extends FieldsSchema>(
  schema: Schema,
  readOnly: readonly string[],
  value: unknown,
): Result<z.core.output<Schema>> {
  const given = typeof value === "object" && value !== null ? Object.keys(value) : [];
  const unknown = given.find(
    (name) => !Object.hasOwn(schema.shape, name) && !readOnly.includes(name),
  );
  if (unknown === undefined) return parseBody(schema, value) as Result<z.core.output<Schema>>;
  const shown = unknown.slice(0, 100);
  return invalid(`Unknown parameter: '${shown}'.`, shown === "" ? null : shown);
}

/** Stands for the values of a parameter that came more than once, however many they are. */
const GIVEN_TWICE: readonly string[] = [];

/**
 * A URL's query parameters in the schema's shape, or a 400 with `param`. Values are strings; one
 * given twice is an array and fits no schema here. Unknown parameters are ignored.
 */
export function parseQuery<T>(schema: z.core.$ZodType<T>, url: string): Result<T> {
  const query = new Map<string, string | readonly string[]>();
  for (const [name, text] of new URL(url).searchParams) {
    query.set(name, query.has(name) ? GIVEN_TWICE : text);
  }
  return parseBody(schema, Object.fromEntries(query));
}

/** A query parameter: a text that came once. Its own checks are said in their own words. */
export const once = z.string({
  error: ({ code }) => (code === "invalid_type" ? "must be given once" : undefined),
});

/** A query parameter that is a whole number from `least` to `most`, or `fallback` when absent. */
export function wholeNumber(least: number, most: number, fallback: number): z.ZodMiniType<number> {
  return z._default(wholeWithin(least, most), fallback);
}

/** One that has no value where it is left out: within `z.optional`. */
export function wholeWithin(least: number, most: number): z.ZodMiniType<number> {
  const digits = once.check(z.regex(/^-?\d{1,16}$/, "must be a whole number"));
  const number = z.pipe(digits, z.transform(Number));
  return z.pipe(number, z.int().check(z.minimum(least), z.maximum(most)));
}

/** `limit` and `offset` of a list, as every list takes them. */
export const pageQuery = z.object({
  limit: wholeNumber(1, 100, 50),
  offset: wholeNumber(0, 1_000_000_000, 0),
});

function refusal(error: z.core.$ZodError, value: unknown): Refusal {
  const { problem, param } = describeError(error, value);
  if (problem === null) return invalid(`Missing required parameter: '${param}'.`, param);
  const continues = /^[a-z]/.test(problem);
  return invalid(continues ? `${param ?? "The request body"} ${problem}.` : problem, param);
}

/** A moment in a query or a body: a date or a date and time in ISO 8601, as Unix ms. */
export const moment = z.pipe(
  once.check(
    z.regex(
      /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/,
      "must be a time as 2026-11-22T10:00:00Z, or a date",
    ),
    z.refine((text) => !Number.isNaN(Date.parse(text)), "must be a time that exists"),
  ),
  z.transform((text) => Date.parse(text)),
);
