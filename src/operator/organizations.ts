import * as z from "zod/mini";
import { created } from "../shared/http/endpoint.ts";
import {
  singleValueSchema,
  pageQuerySchema,
  parseFields,
  parseQuery,
  wholeNumberParameter,
} from "../shared/http/parse-body.ts";
import { KEY_READ_ONLY_FIELDS, apiKeyView } from "../accounts/keys/stored-key.ts";
import {
  insertKey,
  createInsertKeyStatement,
  createKeyCreatedEventStatement,
} from "../accounts/keys/keys.store.ts";
import { mintMemberKey, newKeyOptionFields, newKeySchema } from "../accounts/keys/new-key.ts";
import { timestamp } from "../shared/clock.ts";
import { conflict, success } from "../shared/failure.ts";
import { creationTimeOfId } from "../shared/id.ts";
import { callObject } from "../shared/reach-object.ts";
import {
  emailSchema,
  memberView,
  ORGANIZATION_READ_ONLY_FIELDS,
  nameSchema,
  organizationView,
  slugSchema,
} from "../accounts/organizations/organization.ts";
import type { StoredMember, StoredOrganization } from "../accounts/organizations/organization.ts";
import {
  createOrganization,
  findOrganization,
} from "../accounts/organizations/organizations.store.ts";
import { findOrganizationClosing } from "../accounts/people/closing.store.ts";
import { discardWallet } from "../accounts/people/sign-up.ts";
import {
  listCustomers,
  CUSTOMER_SORT_ORDERS,
  CUSTOMER_SORT_FIELDS,
  listLostOrganizations,
} from "./customers.store.ts";
import type { CustomerOrganization } from "./customers.store.ts";
import type { OperatorCall } from "./operator-context.ts";
import { noFields, withOrganization } from "./organization-call.ts";
import { findSuspension, OPERATOR_EVENT_ID_PREFIX } from "./operator-events.store.ts";

export const newOrganizationSchema = z.object({
  name: nameSchema,
  slug: slugSchema,
  owner_email: emailSchema,
  is_personal: z.nullish(z.boolean()),
  key_scope: newKeyOptionFields.scope,
  rpm_limit: newKeyOptionFields.rpm_limit,
  restore_id: z.nullish(z.uuid()),
});

export const ORGANIZATION_VIEW_READ_ONLY_FIELDS: readonly string[] = [
  ...ORGANIZATION_READ_ONLY_FIELDS,
  "credits_micro",
  "held_micro",
  "open_holds",
  "closed_at",
  "restorable_until",
  "suspension",
];

/**
 * Handles `POST /orgs`. Creates the wallet, then the organization, its owner and first key. Deletes
 * the wallet if the slug is taken. With `restore_id`, uses a lost organization's wallet.
 */
export async function postOrganization(call: OperatorCall) {
  const fields = parseFields(
    newOrganizationSchema,
    ["status", ...ORGANIZATION_VIEW_READ_ONLY_FIELDS],
    call.body,
  );
  if (!fields.ok) return fields;
  const { name, slug, owner_email, is_personal, key_scope, rpm_limit } = fields.value;
  const { restore_id: restoredId = null } = fields.value;
  if (restoredId !== null && !(await isLost(call, restoredId))) {
    return conflict("No lost organization has this ID.", "restore_id");
  }
  const organization: StoredOrganization = {
    id: restoredId ?? crypto.randomUUID(),
    name,
    slug,
    region: call.region,
    isPersonal: is_personal === true ? 1 : 0,
    status: "active",
    rpmLimit: null,
    priceList: null,
    createdAt: call.now,
  };
  const owner: StoredMember = {
    id: crypto.randomUUID(),
    orgId: organization.id,
    email: owner_email,
    role: "owner",
    createdAt: call.now,
  };
  const firstKey = await mintMemberKey(
    call,
    { memberId: owner.id, orgId: owner.orgId },
    { name: "First key", scope: key_scope, rpm_limit },
  );
  if (!firstKey.ok) return firstKey;
  const { storedKey: booked, key } = firstKey.value;
  const { epoch } = await call.wallet(organization.id).create(organization.id);
  const { actor } = call;
  const additionalStatements = [
    createInsertKeyStatement(call.db, booked, null),
    createKeyCreatedEventStatement(call.db, booked, actor),
  ];
  const newRows = { organization, owner, epoch, additionalStatements, actor };
  const creation = await createOrganization(call.db, newRows);
  if (!creation.ok) {
    if (restoredId === null) await discardWallet(call, organization.id);
    return creation;
  }
  if (restoredId !== null) {
    const reset = await callObject(() => call.wallet(restoredId).configure(DEFAULT_SETTINGS));
    if (!reset.ok) return reset;
  }
  return created({
    organization: await organizationViewWithBalance(call, organization),
    member: memberView(owner),
    key: { ...apiKeyView(booked, call.region, call.now), key },
  });
}

async function isLost(call: OperatorCall, id: string): Promise<boolean> {
  return (await findOrganization(call.db, id)) === null && (await call.wallet(id).balance()).ok;
}

const DEFAULT_SETTINGS = { rpmLimit: null, suspended: false, closed: false, priceList: null };

/** Handles `GET /lost-organizations`. */
export async function getLostOrganizations({ db }: OperatorCall) {
  const lost = await listLostOrganizations(db);
  const organizations = lost.map(({ id, balanceMicro, updatedAt }) => {
    return { id, balance_micro: balanceMicro, updated_at: timestamp(updatedAt) };
  });
  return success({ organizations });
}

export const organizationsQuerySchema = z.extend(pageQuerySchema, {
  balance: z._default(z.enum(["true", "false"]), "false"),
  q: z.optional(singleValueSchema.check(z.minLength(1), z.maxLength(200))),
  status: z.optional(z.enum(["active", "suspended"])),
  ends_within_days: z.optional(wholeNumberParameter(0, 3650)),
  sort: z._default(z.enum(CUSTOMER_SORT_FIELDS), "created"),
  order: z.optional(z.enum(CUSTOMER_SORT_ORDERS)),
});

/** Handles `GET /orgs` from D1. Calls wallets only if `balance` is set. */
export async function getOrganizations(call: OperatorCall) {
  const fields = parseQuery(organizationsQuerySchema, call.url);
  if (!fields.ok) return fields;
  const { limit, offset, balance, q = null, status = null, sort, order = null } = fields.value;
  const { ends_within_days: endsWithinDays = null } = fields.value;
  const query = { limit, offset, q, status, sort, order, endsWithinDays };
  const { rows, total } = await listCustomers(call.db, query, call.now);
  const organizations = await Promise.all(
    rows.map(async (row) => {
      const shown =
        balance === "true"
          ? await organizationViewWithBalance(call, row)
          : operatorOrganizationView(row);
      return Object.assign({}, shown, customerFigures(row));
    }),
  );
  return success({ organizations, total, limit, offset });
}

function customerFigures(row: CustomerOrganization) {
  return {
    owner_email: row.ownerEmail,
    balance_micro: row.balanceMicro,
    spend_30d_micro: row.spend30dMicro,
    days_left: row.daysLeft,
    last_used_at: row.lastUsedAt === null ? null : timestamp(row.lastUsedAt),
  };
}

/** Handles `GET /orgs/{id}`. */
export const getOrganization = withOrganization(noFields, async (call, organization) => {
  const { id, status } = organization;
  const [shown, closing, suspended] = await Promise.all([
    organizationViewWithBalance(call, organization),
    findOrganizationClosing(call.db, id),
    status === "suspended" ? findSuspension(call.db, id) : null,
  ]);
  const { closedAt = null, restorableUntil = null } = closing ?? {};
  // Closing also suspends an organization.
  const suspension = closedAt === null ? suspended : null;
  return success({
    ...shown,
    closed_at: closedAt === null ? null : timestamp(closedAt),
    restorable_until: restorableUntil === null ? null : timestamp(restorableUntil),
    suspension: suspension && {
      at: timestamp(creationTimeOfId(suspension.id, OPERATOR_EVENT_ID_PREFIX) ?? 0),
      operator: suspension.operator,
      reason: suspension.reason,
    },
  });
});

/** Handles `POST /orgs/{id}/members/{member_id}/keys`. */
export async function postMemberKey(call: OperatorCall) {
  const fields = parseFields(newKeySchema, KEY_READ_ONLY_FIELDS, call.body);
  if (!fields.ok) return fields;
  const { member_id: memberId = "", id: orgId = "" } = call.params;
  const newKey = await mintMemberKey(call, { memberId, orgId }, fields.value);
  if (!newKey.ok) return newKey;
  const { storedKey: booked, key } = newKey.value;
  const inserted = await insertKey(call.db, booked, null, { actor: call.actor });
  if (!inserted.ok) return inserted;
  return created({ ...apiKeyView(inserted.value, call.region, call.now), key });
}

/**
 * Returns an organization with its wallet's amounts, or nulls if the wallet can't be read, so that
 * a list never fails.
 */
async function organizationViewWithBalance(call: OperatorCall, row: StoredOrganization) {
  const balance = await call
    .wallet(row.id)
    .balance()
    .catch(() => null);
  const known = balance?.ok === true ? balance.value : null;
  return {
    ...operatorOrganizationView(row),
    credits_micro: known?.creditsMicro ?? null,
    held_micro: known?.heldMicro ?? null,
    open_holds: known?.openHolds ?? null,
    operator_policy: known?.operatorPolicy ?? null,
  };
}

function operatorOrganizationView(row: StoredOrganization) {
  return {
    ...organizationView(row),
    status: row.status,
    rpm_limit: row.rpmLimit,
    price_list: row.priceList,
  };
}
