import * as z from "zod";
import { invalid, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";

/** A body or query checked field by field: the first wrong field is named; unknown ones are ignored. */
export function readFields<T>(schema: z.ZodType<T>, value: unknown): Result<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return success(parsed.data);
  const [issue] = parsed.error.issues;
  const param = issue?.path.join(".") ?? "";
  const problem = issue?.message ?? "is not valid";
  return param === ""
    ? invalid("The request body must be a JSON object.")
    : invalid(`Invalid '${param}': ${problem}.`, param);
}

/** A whole number of a query string. */
export function wholeParameter(least: number, most: number): z.ZodType<number | undefined> {
  const rule = `must be a whole number from ${least} to ${most}`;
  return z
    .string()
    .regex(/^\d{1,16}$/, rule)
    .transform(Number)
    .refine((value) => value >= least && value <= most, rule)
    .optional();
}
