import { randomBytes } from "node:crypto";
import { createKey, createOrganization, postCredits } from "../../../scripts/admin-client.ts";
import type { OrganizationAccess, Scope } from "../../../scripts/admin-client.ts";

export type OrganizationOptions = {
  /** Micro-credits, by default 1 dollar. 0 adds none. */
  readonly credits?: number;
  readonly keyScope?: Scope;
  /** The key's requests per minute, 1 to 1000. */
  readonly rpmLimit?: number;
};

/** Creates an organization with an owner, a key and credits through the operator's API. */
export async function makeOrganization(
  adminUrl: string,
  adminToken: string,
  { credits = 1_000_000, keyScope = "regional", rpmLimit }: OrganizationOptions = {},
): Promise<OrganizationAccess> {
  const admin = { url: adminUrl, token: adminToken };
  const name = `test-${randomBytes(6).toString("hex")}`;
  const created = await createOrganization(admin, {
    name,
    slug: name,
    ownerEmail: `${name}@example.com`,
    keyScope,
  });
  const { orgId, memberId } = created;
  if (credits !== 0) await postCredits(admin, orgId, { amount_micro: credits, reference: "first" });
  if (rpmLimit === undefined) return created;
  const key = await createKey(admin, { orgId, memberId, name, scope: keyScope, rpmLimit });
  return { orgId, memberId, key };
}
