import type * as core from "zod/v4/core";
import { EVENT_TYPES } from "../../src/lib/event.ts";

/** A query parameter and what it may be, as JSON Schema. */
export type QueryParameter = { readonly name: string; readonly schema: object };

/** What the tables of paths do not say of an operation. */
export type Description = {
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: readonly QueryParameter[];
  readonly body?: core.$ZodType;
  /** What a success is, by status. */
  readonly answers: Readonly<Record<number, core.$ZodType>>;
  /** Its own errors beside those of every operation: anchors of docs/errors.md. */
  readonly errors?: readonly string[];
};

/** One method of one path, as the OpenAPI document describes it. */
export type Operation = Description & {
  /** `GET /v1/keys/{id}`, as examples and tests name it. */
  readonly name: string;
  readonly method: "get" | "post" | "patch" | "delete";
  /** From the root, with parameters in braces. */
  readonly path: string;
  /** Whose keys may call it. */
  readonly roles: string;
};

/** A row of a table of paths: the method, and the path in Hono's notation. */
type Row = { readonly method: string; readonly path: string };

/**
 * The operations of a table of paths in its order: `under` is what its paths continue, `described` says the
 * rest by name, `rolesOf` who may. Throws for a row that is not described, and for what is no row.
 */
export function operationsOf<T extends Row>(
  rows: readonly T[],
  under: string,
  described: Readonly<Record<string, Description>>,
  rolesOf: (row: T) => string,
): readonly Operation[] {
  const operations = rows.map((row) => {
    const path = under + row.path.replaceAll(/:(\w+)(?:\{[^/]*\})?/g, "{$1}");
    const name = `${row.method} ${path}`;
    const description = described[name];
    if (description === undefined) throw new Error(`scripts/openapi does not describe ${name}`);
    const method = row.method.toLowerCase() as Operation["method"];
    return { ...description, name, method, path, roles: rolesOf(row) };
  });
  const names = new Set(operations.map(({ name }) => name));
  const unknown = Object.keys(described).find((name) => !names.has(name));
  if (unknown !== undefined) throw new Error(`scripts/openapi describes ${unknown}, which is not`);
  return operations;
}

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
    schema: {
      type: "string",
      enum: ["day", "model", "key", "user", "day,model", "day,key", "day,user"],
      default: "day",
    },
  },
  whole("limit", 1, 10_000, 10_000),
  { name: "after", schema: { type: "string" } },
] as const;

const instant = (name: string): QueryParameter => ({
  name,
  schema: { type: "string", format: "date-time" },
});
export const EVENTS = [
  { name: "type", schema: { type: "string", enum: EVENT_TYPES } },
  instant("from"),
  instant("to"),
  whole("limit", 1, 100, 50),
  { name: "after", schema: { type: "string" } },
] as const;
const name = (of: string): QueryParameter => ({ name: of, schema: { type: "string" } });
export const GENERATIONS = [
  date("from"),
  date("to"),
  name("model"),
  name("key_id"),
  name("external_id"),
  {
    name: "status",
    schema: { type: "string", enum: ["held", "settled", "voided", "expired", "refused"] },
  },
  whole("limit", 1, 100, 50),
  name("after"),
] as const;
/** A page, and where it begins. */
/** By offset, or from after the last one seen, which costs the same however many there are. */
export const PAGE_OR_AFTER = [...PAGE, { name: "after", schema: { type: "string" } }] as const;
export const AFTER = [whole("limit", 1, 100, 50), name("after")] as const;

export const INPUT_ITEMS = [
  whole("limit", 1, 100, 20),
  { name: "order", schema: { type: "string", enum: ["asc", "desc"], default: "desc" } },
  name("after"),
] as const;

export const MISSING = ["not_found"] as const;
