import * as z from "zod/mini";
import type { AppContext } from "../../shared/http/context.ts";
import { readBodyFields, queryForCaller } from "../../shared/http/endpoint.ts";
import { actorOfCaller, createRequestCredential } from "../../shared/caller.ts";
import { now } from "../../shared/clock.ts";
import { flattenResult, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import {
  ORGANIZATION_READ_ONLY_FIELDS,
  organizationChangeSchema,
  organizationView,
  MEMBER_READ_ONLY_FIELDS,
  memberView,
} from "./organization.ts";
import type { StoredMember } from "./organization.ts";
import { findOrganization, updateOrganization } from "./organizations.store.ts";
import {
  BUDGETS_MAX,
  budgetsSchema,
  budgetStatusView,
  budgetsFromFields,
} from "../../shared/budgets.ts";
import type { MemberLimits } from "../../shared/contracts/settings.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { policySchema } from "../../shared/policy.ts";
import { callObject } from "../../shared/reach-object.ts";
import type { WalletMethods } from "../../shared/contracts/wallet.ts";
import { findMemberById } from "./members.store.ts";

export async function readOrganizationRoute(c: AppContext) {
  const { orgId } = c.var.admitted.caller;
  const found = await queryForCaller(c, "organization_unreadable", () =>
    findOrganization(c.env.DB, orgId),
  );
  if (!found.ok) return found;
  if (found.value === null) return refuse({ kind: "not_found", message: "No such organization." });
  return success(organizationView(found.value));
}

export async function patchOrganizationRoute(c: AppContext) {
  const fields = await readBodyFields(c, organizationChangeSchema, ORGANIZATION_READ_ONLY_FIELDS);
  if (!fields.ok) return fields;
  const { caller } = c.var.admitted;
  const { orgId, keyId } = caller;
  const by = { keyId, actor: actorOfCaller(caller), now: now(c.env) };
  const changed = flattenResult(
    await queryForCaller(c, "organization_not_changed", () =>
      updateOrganization(c.env.DB, orgId, fields.value, by),
    ),
  );
  return changed.ok ? success(organizationView(changed.value)) : changed;
}

export const memberLimitsSchema = z.object({
  policy: z.optional(z.nullable(policySchema)),
  budgets: z.optional(budgetsSchema(BUDGETS_MAX)),
});

export function readMemberRoute(c: AppContext) {
  return withLimits(c, (wallet, { id }) => wallet.memberLimits(id));
}

export async function patchMemberRoute(c: AppContext) {
  const fields = await readBodyFields(c, memberLimitsSchema, [
    ...MEMBER_READ_ONLY_FIELDS,
    "email",
    "role",
  ]);
  if (!fields.ok) return fields;
  const { policy, budgets: list } = fields.value;
  const { caller } = c.var.admitted;
  const budgets = list === undefined ? undefined : budgetsFromFields(list);
  const change = { policy, budgets, actor: actorOfCaller(caller) };
  const by = createRequestCredential(caller.keyHash, caller.shown);
  return withLimits(c, (wallet, { id }) => wallet.setMemberLimits(id, change, by));
}

async function withLimits(
  c: AppContext,
  call: (wallet: WalletMethods, member: StoredMember) => Promise<Result<MemberLimits>>,
) {
  const { orgId } = c.var.admitted.caller;
  const id = c.req.param("id") ?? "";
  const found = await queryForCaller(c, "member_unreadable", () =>
    findMemberById(c.env.DB, { id, orgId }),
  );
  if (!found.ok) return found;
  const member = found.value;
  if (member === null) return refuse({ kind: "not_found", message: "No such member." });
  const limits = await callObject(() => call(objectsOf(c.env).wallet(orgId), member));
  if (!limits.ok) return limits;
  const { policy, budgets } = limits.value;
  return success({ ...memberView(member), policy, budgets: budgets.map(budgetStatusView) });
}
