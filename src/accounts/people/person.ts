import type { Role } from "../../shared/caller.ts";
import type { OrganizationStatus } from "../organizations/organization.ts";

/** A person in this region. Times are Unix ms. */
export type Person = {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly isEmailProven: 0 | 1;
  /** Sessions created before this time have ended. */
  readonly sessionsFrom: number;
};

/**
 * A person's identity at an issuer. `realm` is the organization that owns the issuer, or '' for the
 * operator's issuers.
 */
export type Identity = {
  readonly realm: string;
  readonly issuer: string;
  readonly subject: string;
};

export type Membership = {
  readonly memberId: string;
  readonly role: Role;
  readonly orgId: string;
  readonly name: string;
  readonly slug: string;
  readonly status: OrganizationStatus;
  readonly isPersonal: 0 | 1;
  readonly isCompanys: 0 | 1;
};

/** Returns the verified address or an undeliverable placeholder. */
export function emailAddressOf(person: Pick<Person, "id" | "email" | "isEmailProven">): string {
  return person.isEmailProven === 1 && person.email !== null
    ? person.email
    : `${person.id.toLowerCase()}@no-address.invalid`;
}
