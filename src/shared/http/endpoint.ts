import type * as z from "zod/mini";
import { refuse, success } from "../failure.ts";
import type { Refusal, Result, Success } from "../failure.ts";
import { fail } from "./context.ts";
import type { AppContext } from "./context.ts";
import { parseFields } from "./parse-body.ts";
import type { FieldsSchema } from "./parse-body.ts";
import { MANAGEMENT_BYTES_MAX, readJsonBody } from "./read-json.ts";
import type { JsonBody } from "./read-json.ts";
import { readWithSlot } from "./request-slots.ts";

/** An object as a client sees it. */
export type View = Readonly<Record<string, unknown>>;

/** What an endpoint that manages something answers: an object, shown with 200 unless it says otherwise, or a failure. */
export type Answer = (Success<View> & { readonly status?: 201 | 202 }) | Refusal;

/** 201 with what was made. */
export function created(value: View): Answer {
  return { ...success(value), status: 201 };
}

/** 202 with what will be done. */
export function accepted(value: View): Answer {
  return { ...success(value), status: 202 };
}

/** The one place where answers become responses, of `/v1` and of `/admin/v1`. */
export function respond(c: AppContext, answer: Answer): Response {
  return answer.ok ? c.json(answer.value, answer.status) : fail(c, answer.failure);
}

/** The JSON body of a request that is not paid for, or 400, 408, 413, 415, 503. */
export async function readBody(c: AppContext): Promise<Result<JsonBody>> {
  const timeoutMs = c.var.config.numbers.BODY_TIMEOUT_MS;
  const limits = { bytesMax: MANAGEMENT_BYTES_MAX, timeoutMs };
  const body = await readWithSlot(c, readJsonBody, limits);
  return "shed" in body ? refuse({ kind: "overloaded" }) : body;
}

/**
 * The fields of that body that the schema names, or a 400 with `param`; what else it may hold,
 * `parseFields` says.
 */
export async function readFields<Schema extends FieldsSchema>(
  c: AppContext,
  schema: Schema,
  readOnly: readonly string[],
): Promise<Result<z.core.output<Schema>>> {
  const body = await readBody(c);
  return body.ok ? parseFields(schema, readOnly, body.value.json) : body;
}
