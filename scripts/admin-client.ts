import type * as record from "./admin/records.ts";
import { ask, pathOf } from "./admin/transport.ts";
import type { AdminClient, Call } from "./admin/transport.ts";

/**
 * Calls of `/admin/v1` for scripts, tests and the operator's CLI, each named after its endpoint.
 * All throw `Refused` or `Unreachable`.
 */
export type { AdminClient } from "./admin/transport.ts";
export type Scope = record.Scope;

const PROGRESS_MS = 2_000;

type Page = { readonly limit?: number | undefined; readonly offset?: number | undefined };

export function postOrganization(admin: AdminClient, body: object) {
  return ask<record.CreatedOrganization>(admin, { method: "POST", path: "/orgs", body });
}

export function getOrganizations(admin: AdminClient, page: Page = {}) {
  return ask<record.Organizations>(admin, { method: "GET", path: "/orgs", query: page });
}

export function getLostOrganizations(admin: AdminClient) {
  const path = "/lost-organizations";
  return ask<record.LostOrganizations>(admin, { method: "GET", path });
}

export function getOrganization(admin: AdminClient, orgId: string) {
  return ask<record.Organization>(admin, { method: "GET", path: pathOf("orgs", orgId) });
}

/** Changes `status`, `name`, `slug` or `rpm_limit` (null removes the limit). */
export function patchOrganization(admin: AdminClient, orgId: string, body: object) {
  return ask<record.Organization>(admin, { method: "PATCH", path: pathOf("orgs", orgId), body });
}

export function getMembers(admin: AdminClient, orgId: string) {
  const path = pathOf("orgs", orgId, "members");
  return ask<{ members: readonly record.Member[] }>(admin, { method: "GET", path });
}

export function postMember(
  admin: AdminClient,
  orgId: string,
  body: { readonly email: string; readonly role: record.Role },
) {
  const path = pathOf("orgs", orgId, "members");
  return ask<record.Member>(admin, { method: "POST", path, body });
}

/** One key of an organization. */
type KeyPath = { readonly orgId: string; readonly keyId: string };

export function patchKey(
  admin: AdminClient,
  { orgId, keyId }: KeyPath,
  body: { readonly name?: string; readonly rpm_limit?: number },
) {
  const path = pathOf("orgs", orgId, "keys", keyId);
  return ask<record.Key>(admin, { method: "PATCH", path, body });
}

export function deleteKey(admin: AdminClient, { orgId, keyId }: KeyPath) {
  const path = pathOf("orgs", orgId, "keys", keyId);
  return ask<record.Key>(admin, { method: "DELETE", path });
}

export function postMemberKey(
  admin: AdminClient,
  member: { readonly orgId: string; readonly memberId: string },
  body: { readonly name: string; readonly scope?: Scope; readonly rpm_limit?: number },
) {
  const path = pathOf("orgs", member.orgId, "members", member.memberId, "keys");
  return ask<record.FreshKey>(admin, { method: "POST", path, body });
}

/**
 * Adds credits, or removes them with a negative amount. Repeating a `reference` changes nothing.
 */
export function postCredits(
  admin: AdminClient,
  orgId: string,
  body: { readonly amount_micro: number; readonly reference: string },
) {
  const path = pathOf("orgs", orgId, "credits");
  return ask<{ credits_micro: number }>(admin, { method: "POST", path, body });
}

/** Returns at most `limit` (1 to 1000) rows of the ledger after `after_seq`. */
export function getLedger(
  admin: AdminClient,
  orgId: string,
  query: { readonly after_seq: number; readonly limit: number },
) {
  const path = pathOf("orgs", orgId, "ledger");
  return ask<record.LedgerPage>(admin, { method: "GET", path, query });
}

/** Returns all groups of a usage report, from all its pages. */
export async function wholeUsage(admin: AdminClient, call: Call): Promise<record.Usage> {
  const asked = (after?: string) =>
    ask<record.UsagePage>(admin, { ...call, query: { ...call.query, after } });
  const { next_after: second, ...usage } = await asked();
  const data = [...usage.data];
  for (let after = second; after !== undefined;) {
    const page = await asked(after);
    data.push(...page.data);
    after = page.next_after;
  }
  return { ...usage, data };
}

/**
 * Continues a search over all organizations until there are results or no organizations are left.
 */
export async function findAnywhere(admin: AdminClient, call: Call): Promise<record.Found> {
  for (let after: string | undefined; ;) {
    const query = { ...call.query, after };
    const answer = await ask<record.Found>(admin, { ...call, query });
    if (answer.data.length > 0 || answer.next_after === null) return answer;
    after = answer.next_after;
  }
}

/** Compares a whole wallet. `onProgress` receives the number of rows read, every two seconds. */
export async function postReconcile(
  admin: AdminClient,
  orgId: string,
  onProgress: (rows: number) => void = () => undefined,
): Promise<record.Reconciliation> {
  const path = pathOf("orgs", orgId, "reconcile");
  for (let after: string | undefined; ;) {
    const body = { within_ms: PROGRESS_MS, after };
    const { next_after: next, ...answer } = await ask<record.ReconcilePage>(admin, {
      method: "POST",
      path,
      body,
    });
    if (next === undefined) return answer;
    onProgress(answer.rows_read);
    after = next;
  }
}

export function postSettle(admin: AdminClient, orgId: string, body: record.SettlementLine) {
  const path = pathOf("orgs", orgId, "settle");
  return ask<record.Settlement>(admin, { method: "POST", path, body });
}

export function getHealth(admin: AdminClient) {
  return ask<record.Health>(admin, { method: "GET", path: "/health" });
}

type NewOrganization = {
  readonly name: string;
  /** 3 to 32 characters of a-z, 0-9 and -, unique in its region. */
  readonly slug: string;
  readonly ownerEmail: string;
  readonly keyScope: Scope;
};
export type OrganizationAccess = {
  readonly orgId: string;
  readonly memberId: string;
  readonly key: string;
};
type NewKey = {
  readonly orgId: string;
  readonly memberId: string;
  readonly name: string;
  readonly scope: Scope;
  /** Requests per minute, 1 to 1000. The default is the gateway's. */
  readonly rpmLimit?: number;
};

/**
 * Creates an organization with its owner and the owner's first key. Returns only the fields that
 * scripts need.
 */
export async function createOrganization(
  admin: AdminClient,
  made: NewOrganization,
): Promise<OrganizationAccess> {
  const { organization, member, key } = await postOrganization(admin, {
    name: made.name,
    slug: made.slug,
    owner_email: made.ownerEmail,
    key_scope: made.keyScope,
  });
  return { orgId: organization.id, memberId: member.id, key: key.key };
}

/** Creates a key for a member. Returns the key itself. */
export async function createKey(admin: AdminClient, made: NewKey): Promise<string> {
  const { name, scope, rpmLimit } = made;
  const limit = rpmLimit === undefined ? {} : { rpm_limit: rpmLimit };
  const { key } = await postMemberKey(admin, made, { name, scope, ...limit });
  return key;
}
