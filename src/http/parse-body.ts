import * as z from "zod";
import { invalid, success } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import { OUR_WORDS, describeIssue } from "./issue-text.ts";

/**
 * A body that has the schema's shape, or a 400 for the first thing that is wrong, with `param` as
 * OpenAI writes it (`messages[0].role`). A message given to a schema continues the parameter's name:
 * `z.string().regex(..., "must be lowercase")`.
 */
export function parseBody<T>(schema: z.ZodType<T>, value: unknown): Result<T> {
  const parsed = schema.safeParse(value, OUR_WORDS);
  return parsed.success ? success(parsed.data) : refusal(parsed.error, value);
}

/**
 * A URL's query parameters in the schema's shape, or a 400 with `param`. Values are strings; one
 * given twice is an array and fits no schema here. Unknown parameters are ignored.
 */
export function parseQuery<T>(schema: z.ZodType<T>, url: string): Result<T> {
  const query = new Map<string, string | string[]>();
  for (const [name, text] of new URL(url).searchParams) {
    const before = query.get(name);
    query.set(name, before === undefined ? text : [before, text].flat());
  }
  return parseBody(schema, Object.fromEntries(query));
}

/** A query parameter that is a whole number from `least` to `most`, or `fallback` when absent. */
export function wholeNumber(least: number, most: number, fallback: number): z.ZodType<number> {
  return z
    .string("must be given once")
    .regex(/^-?\d{1,15}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.int().min(least).max(most))
    .default(fallback);
}

function refusal(error: z.ZodError, value: unknown): Refusal {
  const [issue] = error.issues;
  if (issue === undefined) return invalid("The request is not valid.");
  const { message, param } = describeIssue(issue, value);
  return invalid(message, param);
}
