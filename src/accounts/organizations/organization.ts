import * as z from "zod/mini";
import type { Role } from "../../shared/caller.ts";
import { timestamp } from "../../shared/clock.ts";
import { label } from "../../shared/label.ts";
import type { Region } from "../../shared/regions.ts";

/** 3 to 32 of a-z, 0-9 and hyphens, wherever they stand: the interface. */
export const slugSchema = z
  .string()
  .check(z.regex(/^[a-z0-9-]{3,32}$/, "must be 3 to 32 lowercase letters, digits and hyphens"));

/** A name that people read. */
export const nameSchema = label(200);

/** zod's own pattern, with the labels of RFC 1035 behind the @: none ends in a hyphen or is over 63 long. */
const EMAIL =
  /^(?:[A-Za-z0-9_'+-]+\.)*[A-Za-z0-9_'+-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}$/;
const NO_EMAIL = "must be an email address";

/** ASCII only, so that the book can compare addresses without regard to case. At most 64 before the @: RFC 5321. */
export const emailSchema = z.email({ pattern: EMAIL, error: NO_EMAIL }).check(
  z.maxLength(254),
  z.refine((text) => text.indexOf("@") <= 64, NO_EMAIL),
);

export const roleSchema = z.enum(["owner", "admin", "billing", "member"]);

/** What an owner may change. */
export const organizationChangeSchema = z.object({
  name: z.optional(nameSchema),
  slug: z.optional(slugSchema),
});

/** What an organization and a member show beside what may be changed. */
export const ORGANIZATION_READ_ONLY: readonly string[] = [
  "id",
  "region",
  "is_personal",
  "created_at",
];
export const MEMBER_READ_ONLY: readonly string[] = ["id", "created_at"];

export type OrganizationStatus = "active" | "suspended";

/** An organization as its home's book has it. Times are Unix ms. */
export type StoredOrganization = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly region: Region;
  readonly isPersonal: 0 | 1;
  readonly status: OrganizationStatus;
  readonly rpmLimit: number | null;
  /** Its own price list; null: the region's alone. */
  readonly priceList: string | null;
  readonly createdAt: number;
};

/** What an update sets; what is left out keeps its value. */
export type OrganizationChange = {
  readonly [K in "name" | "slug" | "status" | "rpmLimit" | "priceList"]?:
    | StoredOrganization[K]
    | undefined;
};

/** A member, likewise. */
export type StoredMember = {
  readonly id: string;
  readonly orgId: string;
  readonly email: string;
  readonly role: Role;
  readonly createdAt: number;
};

/** The organization of the interface. */
type OrganizationRecord = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly region: Region;
  readonly is_personal: boolean;
  readonly created_at: string;
};

type MemberRecord = {
  readonly id: string;
  readonly email: string;
  readonly role: Role;
  readonly created_at: string;
};

export function organizationRecord(row: StoredOrganization): OrganizationRecord {
  return {
    id: row.id,
    name: row.name,
    slug: row.slug,
    region: row.region,
    is_personal: row.isPersonal === 1,
    created_at: timestamp(row.createdAt),
  };
}

export function memberRecord(row: StoredMember): MemberRecord {
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    created_at: timestamp(row.createdAt),
  };
}
