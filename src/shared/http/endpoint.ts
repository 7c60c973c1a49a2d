import type * as z from "zod/mini";
import { refuse, success } from "../failure.ts";
import type { Refusal, Result, Success } from "../failure.ts";
import { fail } from "./context.ts";
import type { AppContext } from "./context.ts";
import { parseFields } from "./parse-body.ts";
import type { ObjectSchema } from "./parse-body.ts";
import { MANAGEMENT_BYTES_MAX, readJsonBody } from "./read-json.ts";
import type { JsonBody } from "./read-json.ts";
import { readBodyInMemorySlot } from "./request-slots.ts";
import type { AnonymousBodyOwner } from "./request-slots.ts";
import { queryDatabase } from "../query-database.ts";

/** A handler's response body or failure. */
export type EndpointResult = (Success<object> & { readonly status?: 201 | 202 }) | Refusal;

export function created<const T extends object>(value: T): Success<T> & { readonly status: 201 } {
  return { ...success(value), status: 201 };
}

export function accepted<const T extends object>(value: T): Success<T> & { readonly status: 202 } {
  return { ...success(value), status: 202 };
}

export function respond(c: AppContext, answer: EndpointResult): Response {
  return answer.ok ? c.json(answer.value, answer.status) : fail(c, answer.failure);
}

/**
 * Reads the JSON body of an unpaid request. Fails with 400, 408, 413, 415 or 503. `owner`
 * identifies a caller without a key.
 */
export async function readBody(
  c: AppContext,
  owner?: AnonymousBodyOwner,
): Promise<Result<JsonBody>> {
  const timeoutMs = c.var.config.numbers.BODY_TIMEOUT_MS;
  const limits = { bytesMax: MANAGEMENT_BYTES_MAX, timeoutMs };
  const body = await readBodyInMemorySlot(c, readJsonBody, limits, owner);
  return "shed" in body ? refuse({ kind: "overloaded" }) : body;
}

export async function readBodyFields<Schema extends ObjectSchema>(
  c: AppContext,
  schema: Schema,
  readOnly: readonly string[],
): Promise<Result<z.core.output<Schema>>> {
  const body = await readBody(c);
  return body.ok ? parseFields(schema, readOnly, body.value.json) : body;
}

/** Runs `queryDatabase` with the caller's request and organization IDs. */
export function queryForCaller<T>(
  c: AppContext,
  event: string,
  statement: () => Promise<T>,
): Promise<Result<T>> {
  const fields = { request_id: c.var.requestId, org_id: c.var.admitted.caller.orgId };
  return queryDatabase(statement, event, fields);
}

/** Returns the caller's member ID if the caller may access only their own objects, else null. */
export function memberFilter({ var: { member } }: AppContext): string | null {
  return member.role === "member" ? member.id : null;
}
