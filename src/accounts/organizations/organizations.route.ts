import type { AppContext } from "../../shared/http/context.ts";
import { readFields } from "../../shared/http/endpoint.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import { actorOfCaller } from "../../shared/caller.ts";
import { now } from "../../shared/clock.ts";
import { flattenResult, refuse, success } from "../../shared/failure.ts";
import {
  ORGANIZATION_READ_ONLY_FIELDS,
  organizationChangeSchema,
  organizationRecord,
} from "./organization.ts";
import { findOrganization, updateOrganization } from "./organizations.store.ts";

export async function readOrganizationRoute(c: AppContext) {
  const { orgId } = c.var.admitted.caller;
  const found = await queryDatabase(
    () => findOrganization(c.env.DB, orgId),
    "organization_unreadable",
    {
      org_id: orgId,
    },
  );
  if (!found.ok) return found;
  if (found.value === null) return refuse({ kind: "not_found", message: "No such organization." });
  return success(organizationRecord(found.value));
}

export async function patchOrganizationRoute(c: AppContext) {
  const fields = await readFields(c, organizationChangeSchema, ORGANIZATION_READ_ONLY_FIELDS);
  if (!fields.ok) return fields;
  const { caller } = c.var.admitted;
  const { orgId, keyId } = caller;
  const by = { keyId, actor: actorOfCaller(caller), nowMs: now(c.env) };
  const changed = flattenResult(
    await queryDatabase(
      () => updateOrganization(c.env.DB, orgId, fields.value, by),
      "organization_not_changed",
      { org_id: orgId },
    ),
  );
  return changed.ok ? success(organizationRecord(changed.value)) : changed;
}
