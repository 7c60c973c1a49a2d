import type * as z from "zod/mini";
import type { StoredOrganization } from "../accounts/organizations/organization.ts";
import { findOrganization } from "../accounts/organizations/organizations.store.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Refusal, Result } from "../shared/failure.ts";
import { parseFields, parseQuery } from "../shared/http/parse-body.ts";
import type { ObjectSchema } from "../shared/http/parse-body.ts";
import type { OperatorCall } from "./operator-context.ts";

type OrganizationHandler<Fields, A> = (
  call: OperatorCall,
  organization: StoredOrganization,
  fields: Fields,
) => Promise<A>;

/**
 * Returns a handler for paths below `/orgs/{id}`. Reads the request's fields, then finds the
 * organization.
 */
export function withOrganization<Fields, A>(
  readFields: (call: OperatorCall) => Result<Fields>,
  handle: OrganizationHandler<Fields, A>,
) {
  return async (call: OperatorCall): Promise<A | Refusal> => {
    const fields = readFields(call);
    if (!fields.ok) return fields;
    const found = await findOrganizationOfCall(call);
    return found.ok ? handle(call, found.value, fields.value) : found;
  };
}

export function noFields(): Result<null> {
  return success(null);
}

export function queryOf<T>(schema: z.core.$ZodType<T>) {
  return ({ url }: OperatorCall): Result<T> => parseQuery(schema, url);
}

export function bodyOf<Schema extends ObjectSchema>(
  schema: Schema,
  readOnly: readonly string[] = [],
) {
  return ({ body }: OperatorCall): Result<z.core.output<Schema>> =>
    parseFields(schema, readOnly, body);
}

export async function findOrganizationOfCall({
  db,
  params,
}: OperatorCall): Promise<Result<StoredOrganization>> {
  const row = await findOrganization(db, params["id"] ?? "");
  return row === null ? organizationNotFound() : success(row);
}

export function organizationNotFound(): Refusal {
  return refuse({ kind: "not_found", message: "No such organization." });
}
