import type { Role } from "../../shared/caller.ts";
import type { OrganizationStatus } from "../organizations/organization.ts";

/** A human of this region. Times are Unix ms. */
export type Person = {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly isEmailProven: 0 | 1;
  readonly sessionsFrom: number;
};

/** What proves a person: what an issuer calls them. `realm`: '' for the operator's issuers. */
export type Identity = {
  readonly realm: string;
  readonly issuer: string;
  readonly subject: string;
};

/** What a person is in an organization. */
export type Membership = {
  readonly memberId: string;
  readonly role: Role;
  readonly orgId: string;
  readonly name: string;
  readonly slug: string;
  readonly status: OrganizationStatus;
  readonly isPersonal: 0 | 1;
  /** Nobody acts in it but who came in by its own issuer. */
  readonly isCompanys: 0 | 1;
};

/** The address that a member has in place of one that the issuer told. */
export function addressOf(person: Pick<Person, "id" | "email" | "isEmailProven">): string {
  return person.isEmailProven === 1 && person.email !== null
    ? person.email
    : `${person.id.toLowerCase()}@no-address.invalid`;
}
