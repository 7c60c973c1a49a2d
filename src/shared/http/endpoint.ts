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
import type { BodyOwner } from "./request-slots.ts";

/** A JSON object of a response. */
export type View = Readonly<Record<string, unknown>>;

/** The result of a management endpoint: an object (200 by default) or a failure. */
export type Answer = (Success<View> & { readonly status?: 201 | 202 }) | Refusal;

/** Returns 201 with the created object. */
export function created(value: View): Answer {
  return { ...success(value), status: 201 };
}

/** Returns 202 with the accepted object. */
export function accepted(value: View): Answer {
  return { ...success(value), status: 202 };
}

/** Turns the result of an endpoint of `/v1` or `/admin/v1` into a response. */
export function respond(c: AppContext, answer: Answer): Response {
  return answer.ok ? c.json(answer.value, answer.status) : fail(c, answer.failure);
}

/**
 * Reads the JSON body of an unpaid request, or returns 400, 408, 413, 415 or 503. `owner` is the caller's share
 * of the room if it has no key.
 */
export async function readBody(c: AppContext, owner?: BodyOwner): Promise<Result<JsonBody>> {
  const timeoutMs = c.var.config.numbers.BODY_TIMEOUT_MS;
  const limits = { bytesMax: MANAGEMENT_BYTES_MAX, timeoutMs };
  const body = await readWithSlot(c, readJsonBody, limits, owner);
  return "shed" in body ? refuse({ kind: "overloaded" }) : body;
}

/** Reads the body's fields by schema, or returns 400 with `param`. See `parseFields` for other fields. */
export async function readFields<Schema extends FieldsSchema>(
  c: AppContext,
  schema: Schema,
  readOnly: readonly string[],
): Promise<Result<z.core.output<Schema>>> {
  const body = await readBody(c);
  return body.ok ? parseFields(schema, readOnly, body.value.json) : body;
}
