import type * as core from "zod/v4/core";
import type { HeaderParameter } from "./headers.ts";
import type { QueryParameter } from "./schemas.ts";

/** What the tables of paths do not say of an operation. */
export type Description = {
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: readonly QueryParameter[];
  readonly headers?: readonly HeaderParameter[];
  readonly body?: core.$ZodType;
  /** Whether the body may be left out. */
  readonly isBodyOptional?: true;
  /** What a success is, by status. */
  readonly answers: Readonly<Record<number, core.$ZodType>>;
  /** What the data of each event is, where a success may come as a stream. */
  readonly events?: core.$ZodType;
  /** Whether a success says in `location` where to ask for it again. */
  readonly hasLocation?: true;
  /** Its own errors beside those of its row: anchors of docs/errors.md. */
  readonly errors?: readonly string[];
};

/** What the table of paths says of a row, in the document's words. */
export type Standing = {
  /** Whose keys may call it. */
  readonly roles: string;
  /** Anchors of docs/errors.md that any such row may answer with. */
  readonly errors: readonly string[];
  /** Whether it costs money; whether fields that the body's schema does not name are refused. */
  readonly isPaid: boolean;
  readonly isStrict: boolean;
};

/** One method of one path, as the OpenAPI document describes it. */
export type Operation = Description &
  Standing & {
    /** `GET /v1/keys/{id}`, as examples and tests name it. */
    readonly name: string;
    readonly method: "get" | "post" | "patch" | "delete";
    /** From the root, with parameters in braces. */
    readonly path: string;
  };

/** A row of a table of paths: the method, and the path in Hono's notation. */
export type Row = { readonly method: string; readonly path: string };

/**
 * The operations of a table of paths in its order: `under` is what its paths continue, `described` says the
 * rest by name, `standingOf` what follows from the row. Throws for a row that is not described, and for what is no row.
 */
export function operationsOf<T extends Row>(
  rows: readonly T[],
  under: string,
  described: Readonly<Record<string, Description>>,
  standingOf: (row: T, description: Description) => Standing,
): readonly Operation[] {
  const operations = rows.map((row) => {
    const path = under + row.path.replaceAll(/:(\w+)(?:\{[^/]*\})?/g, "{$1}");
    const name = `${row.method} ${path}`;
    const description = described[name];
    if (description === undefined) throw new Error(`scripts/openapi does not describe ${name}`);
    const method = row.method.toLowerCase() as Operation["method"];
    const standing = standingOf(row, description);
    const errors = [...new Set([...standing.errors, ...(description.errors ?? [])])];
    return { ...description, ...standing, errors, name, method, path };
  });
  const names = new Set(operations.map(({ name }) => name));
  const unknown = Object.keys(described).find((name) => !names.has(name));
  if (unknown !== undefined) throw new Error(`scripts/openapi describes ${unknown}, which is not`);
  return operations;
}
