import * as z from "zod/mini";
import { parseFields } from "../shared/http/parse-body.ts";
import { REGION_PRICE_LIST } from "../models/catalog/price-lists.ts";
import { hasPriceListRows } from "../models/catalog/prices.store.ts";
import { timestamp } from "../shared/clock.ts";
import { invalid, refuse, success } from "../shared/failure.ts";
import type { Refusal } from "../shared/failure.ts";
import { organizationChangeSchema } from "../accounts/organizations/organization.ts";
import {
  findOrganization,
  updateOrganization,
} from "../accounts/organizations/organizations.store.ts";
import { policySchema } from "../shared/policy.ts";
import { syncWithDatabase } from "../shared/sync-with-database.ts";
import type { OperatorCall } from "./operator-context.ts";
import { priceListNameSchema } from "./prices.ts";
import { ORGANIZATION_VIEW_READ_ONLY_FIELDS, getOrganization } from "./organizations.ts";

/**
 * A change of an organization. Null removes `rpm_limit` or `price_list`. Only operators see the
 * `reason` of a suspension.
 */
export const operatorOrganizationChangeSchema = z.extend(organizationChangeSchema, {
  status: z.optional(z.enum(["active", "suspended"])),
  rpm_limit: z.optional(z.nullable(z.int().check(z.minimum(1)))),
  price_list: z.optional(z.nullable(priceListNameSchema)),
  operator_policy: z.optional(z.nullable(policySchema)),
  reason: z.optional(z.string().check(z.minLength(1), z.maxLength(200))),
});

/** Handles `PATCH /orgs/{id}`. Updates D1 first, so that a taken slug changes nothing. */
export async function patchOrganization(call: OperatorCall) {
  const fields = parseFields(
    operatorOrganizationChangeSchema,
    ORGANIZATION_VIEW_READ_ONLY_FIELDS,
    call.body,
  );
  if (!fields.ok) return fields;
  const id = call.params["id"] ?? "";
  const { rpm_limit: rpmLimit, price_list: priceList, operator_policy: policy } = fields.value;
  const { name, slug, status } = fields.value;
  const refused = refuseFields(call, fields.value) ?? (await refusePriceList(call, priceList));
  if (refused !== null) return refused;
  const changed = await updateOrganization(
    call.db,
    id,
    { name, slug, status, rpmLimit, priceList },
    { ...call, keyId: null },
  );
  if (!changed.ok) return changed;
  const walletSync = await syncWithDatabase(changed.value, {
    send: (row) =>
      call.wallet(row.id).configure({
        rpmLimit: row.rpmLimit,
        suspended: row.status === "suspended",
        priceList: row.priceList,
      }),
    reread: () => findOrganization(call.db, id),
    isSame: (one, other) =>
      one.status === other.status &&
      one.rpmLimit === other.rpmLimit &&
      one.priceList === other.priceList,
  });
  if (!walletSync.ok) return walletSync;
  const policyChange =
    policy === undefined ? null : await call.wallet(id).setOperatorPolicy(policy, call.actor);
  return policyChange?.ok === false ? policyChange : viewAfterChange(call, fields.value);
}

type Change = z.infer<typeof operatorOrganizationChangeSchema>;

/**
 * Returns the changed organization. Takes the suspension from the request, because the suspension's
 * event isn't stored yet.
 */
async function viewAfterChange(call: OperatorCall, { status, reason }: Change) {
  const shown = await getOrganization(call);
  if (!shown.ok || status !== "suspended") return shown;
  const suspension = { at: timestamp(call.now), operator: call.actor.id, reason: reason ?? null };
  return success({ ...shown.value, suspension });
}

function refuseFields(call: OperatorCall, change: Change): Refusal | null {
  if (change.reason !== undefined && change.status !== "suspended") {
    return invalid("reason is only accepted with the status 'suspended'.", "reason");
  }
  return refuseRole(call, change);
}

function refuseRole(
  { role }: OperatorCall,
  { price_list: priceList, ...others }: Change,
): Refusal | null {
  const changesOthers = Object.values(others).some((value) => value !== undefined);
  if (priceList !== undefined && role === "support") {
    return refuse({ kind: "role_required", roles: ["finance", "all"] });
  }
  return changesOthers && role === "finance"
    ? refuse({ kind: "role_required", roles: ["support", "all"] })
    : null;
}

async function refusePriceList(
  { db }: OperatorCall,
  list: string | null | undefined,
): Promise<Refusal | null> {
  if (list === undefined || list === null) return null;
  if (list === REGION_PRICE_LIST) {
    return invalid(
      `price_list can't be '${list}', which applies to every organization. Send null for no own list.`,
      "price_list",
    );
  }
  return (await hasPriceListRows(db, list))
    ? null
    : invalid(`price_list: the list '${list}' has no prices in this region.`, "price_list");
}
