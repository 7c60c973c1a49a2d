import type * as core from "zod/v4/core";

/** A query parameter and what it may be, as JSON Schema. */
export type QueryParameter = { readonly name: string; readonly schema: object };

/** One method of one path, as the OpenAPI document describes it. */
export type Operation = {
  readonly method: "get" | "post" | "patch" | "delete";
  /** From the root, with parameters in braces. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Whose keys may call it. */
  readonly roles: string;
  readonly query?: readonly QueryParameter[];
  readonly body?: core.$ZodType;
  /** What a success is, by status. */
  readonly answers: Readonly<Record<number, core.$ZodType>>;
  /** Its own errors beside those of every operation: anchors of docs/errors.md. */
  readonly errors?: readonly string[];
};

/** A whole number as a query parameter. */
export const whole = (
  name: string,
  minimum: number,
  maximum: number,
  preset: number,
): QueryParameter => ({
  name,
  schema: { type: "integer", minimum, maximum, default: preset },
});
export const PAGE = [whole("limit", 1, 100, 50), whole("offset", 0, 1_000_000_000, 0)] as const;
const date = (name: string): QueryParameter => ({
  name,
  schema: { type: "string", format: "date" },
});
export const USAGE = [
  date("from"),
  date("to"),
  {
    name: "group_by",
    schema: { type: "string", enum: ["day", "model", "key", "user"], default: "day" },
  },
  whole("limit", 1, 10_000, 10_000),
  { name: "after", schema: { type: "string" } },
] as const;

export const MISSING = ["not_found"] as const;
