import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { readFields } from "../http/read-fields.ts";
import { askBook } from "../lib/ask-book.ts";
import { now } from "../lib/clock.ts";
import {
  ORGANIZATION_READ_ONLY,
  organizationChangeSchema,
  organizationRecord,
} from "./organization.ts";
import { findOrganization, updateOrganization } from "./organizations.store.ts";

/** GET /v1/orgs/{id}: the caller's own organisation, for any of its members. */
export async function readOrganizationRoute(c: Context<AppEnv>): Promise<Response> {
  const { orgId } = c.var.admitted.caller;
  const found = await askBook(() => findOrganization(c.env.DB, orgId), "organization_unreadable", {
    org_id: orgId,
  });
  if (!found.ok) return fail(c, found.failure);
  if (found.value === null) return fail(c, { kind: "not_found", message: "No such organization." });
  return c.json(organizationRecord(found.value));
}

/** PATCH /v1/orgs/{id}: an owner sets `name` and `slug`. 200 the whole object, 409 for a taken slug. */
export async function patchOrganizationRoute(c: Context<AppEnv>): Promise<Response> {
  const fields = await readFields(c, organizationChangeSchema, ORGANIZATION_READ_ONLY);
  if (!fields.ok) return fail(c, fields.failure);
  const { orgId, keyId } = c.var.admitted.caller;
  const by = { keyId, actor: { kind: "key", id: keyId }, nowMs: now(c.env) } as const;
  const asked = await askBook(
    () => updateOrganization(c.env.DB, orgId, fields.value, by),
    "organization_not_changed",
    { org_id: orgId },
  );
  const changed = asked.ok ? asked.value : asked;
  return changed.ok ? c.json(organizationRecord(changed.value)) : fail(c, changed.failure);
}
