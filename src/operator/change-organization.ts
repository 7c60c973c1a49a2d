import * as z from "zod/mini";
import type { Answer } from "../http/endpoint.ts";
import { parseFields } from "../http/parse-body.ts";
import { success } from "../lib/failure.ts";
import { organizationChangeSchema } from "../organizations/organization.ts";
import { findOrganization, updateOrganization } from "../organizations/organizations.store.ts";
import { followBook } from "../lib/follow-book.ts";
import type { OperatorCall } from "./operator-context.ts";
import { SHOWN_READ_ONLY, withBalance } from "./organizations.ts";

/** `rpm_limit` null is none. */
export const organizationChange = z.extend(organizationChangeSchema, {
  status: z.optional(z.enum(["active", "suspended"])),
  rpm_limit: z.optional(z.nullable(z.int().check(z.minimum(1)))),
});

/**
 * `PATCH /orgs/{id}`: the book first, so that a taken slug changes nothing, then its wallet, which
 * refuses what is paid while `status` is suspended and keeps the organisation's `rpm_limit`.
 */
export async function patchOrganization(call: OperatorCall): Promise<Answer> {
  const fields = parseFields(organizationChange, SHOWN_READ_ONLY, call.body);
  if (!fields.ok) return fields;
  const id = call.params["id"] ?? "";
  const { rpm_limit: rpmLimit, ...named } = fields.value;
  const changed = await updateOrganization(
    call.db,
    id,
    { ...named, rpmLimit },
    {
      keyId: null,
      actor: call.actor,
      nowMs: call.now,
    },
  );
  if (!changed.ok) return changed;
  const followed = await followBook(changed.value, {
    tell: (row) =>
      call
        .wallet(row.id)
        .configure({ rpmLimit: row.rpmLimit, suspended: row.status === "suspended" }),
    reread: () => findOrganization(call.db, id),
    isSame: (one, other) => one.status === other.status && one.rpmLimit === other.rpmLimit,
  });
  return followed.ok ? success(await withBalance(call, followed.value)) : followed;
}
