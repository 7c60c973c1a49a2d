import type { Context } from "hono";
import type * as z from "zod/mini";
import type { Result } from "../lib/failure.ts";
import type { AppEnv } from "./context.ts";
import { parseBody } from "./parse-body.ts";
import { MANAGEMENT_BYTES_MAX, readJson } from "./read-json.ts";

/**
 * The fields of a request's JSON body that the schema names, or 400 with `param`, 408, 413, 415.
 * Every other field is left out: a body changes nothing that its schema does not name.
 */
export async function readFields<T>(
  c: Context<AppEnv>,
  schema: z.core.$ZodType<T>,
): Promise<Result<T>> {
  const timeoutMs = c.var.config.numbers.BODY_TIMEOUT_MS;
  const body = await readJson(c.req.raw, { bytesMax: MANAGEMENT_BYTES_MAX, timeoutMs });
  return body.ok ? parseBody(schema, body.value) : body;
}
