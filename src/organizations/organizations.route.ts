import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { organizationRecord } from "./organization.ts";
import { findOrganization } from "./organizations.store.ts";

/** GET /v1/orgs/{id}: the caller's own organisation, for any of its members. */
export async function readOrganizationRoute(c: Context<AppEnv>): Promise<Response> {
  const row = await findOrganization(c.env.DB, c.var.admitted.caller.orgId);
  if (row === null) return fail(c, { kind: "not_found", message: "No such organization." });
  return c.json(organizationRecord(row));
}
