import type { Context } from "hono";
import type * as z from "zod/mini";
import type { Result } from "../lib/failure.ts";
import type { AppEnv } from "./context.ts";
import { parseFields } from "./parse-body.ts";
import type { FieldsSchema } from "./parse-body.ts";
import { MANAGEMENT_BYTES_MAX, readJson } from "./read-json.ts";

/**
 * The fields of a request's JSON body that the schema names, or 400 with `param`, 408, 413, 415; what else
 * it may hold, `parseFields` says.
 */
export async function readFields<Schema extends FieldsSchema>(
  c: Context<AppEnv>,
  schema: Schema,
  readOnly: readonly string[],
): Promise<Result<z.core.output<Schema>>> {
  const timeoutMs = c.var.config.numbers.BODY_TIMEOUT_MS;
  const body = await readJson(c.req.raw, { bytesMax: MANAGEMENT_BYTES_MAX, timeoutMs });
  return body.ok ? parseFields(schema, readOnly, body.value) : body;
}
