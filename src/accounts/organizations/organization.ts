import * as z from "zod/mini";
import type { Role } from "../../shared/caller.ts";
import { timestamp } from "../../shared/clock.ts";
import { labelSchema } from "../../shared/label.ts";
import type { Region } from "../../shared/regions.ts";

const SLUG_PATTERN = /^[a-z0-9-]{3,32}$/;

export const slugSchema = z.string().check(
  z.regex(SLUG_PATTERN, "must be 3 to 32 lowercase letters, digits and hyphens"),
  z.refine((slug) => !isReservedSlug(slug), "is reserved: choose another"),
);

export function isSlug(text: string): boolean {
  return SLUG_PATTERN.test(text);
}

const RESERVED_SLUGS = new Set(
  "admin api app billing console docs eu us health internal status support turnpike v1 www".split(
    " ",
  ),
);
export const CLOSED_ORGANIZATION_SLUG_PREFIX = "closed-";

export function isReservedSlug(slug: string): boolean {
  return RESERVED_SLUGS.has(slug) || slug.startsWith(CLOSED_ORGANIZATION_SLUG_PREFIX);
}

export const nameSchema = labelSchema(200);

/** zod's email pattern with stricter domain labels (RFC 1035). */
const EMAIL_PATTERN =
  /^(?:[A-Za-z0-9_'+-]+\.)*[A-Za-z0-9_'+-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}$/;
const EMAIL_MESSAGE = "must be an email address";

/**
 * An email address in ASCII, because SQLite's `lower` doesn't convert other letters. At most 64
 * characters precede the @ (RFC 5321).
 */
export const emailSchema = z.email({ pattern: EMAIL_PATTERN, error: EMAIL_MESSAGE }).check(
  z.maxLength(254),
  z.refine((text) => text.indexOf("@") <= 64, EMAIL_MESSAGE),
);

export const roleSchema = z.enum(["owner", "admin", "billing", "member"]);

export const organizationChangeSchema = z.object({
  name: z.optional(nameSchema),
  slug: z.optional(slugSchema),
});

export const ORGANIZATION_READ_ONLY_FIELDS: readonly string[] = [
  "id",
  "region",
  "is_personal",
  "created_at",
];
export const MEMBER_READ_ONLY_FIELDS: readonly string[] = ["id", "created_at"];

export type OrganizationStatus = "active" | "suspended";

/** An organization's row in D1. Times are Unix ms. */
export type StoredOrganization = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly region: Region;
  readonly isPersonal: 0 | 1;
  readonly status: OrganizationStatus;
  readonly rpmLimit: number | null;
  /** The price list, or null if the region's list applies. */
  readonly priceList: string | null;
  readonly createdAt: number;
};

export type OrganizationChange = {
  readonly [K in "name" | "slug" | "status" | "rpmLimit" | "priceList"]?:
    | StoredOrganization[K]
    | undefined;
};

export type StoredMember = {
  readonly id: string;
  readonly orgId: string;
  readonly email: string;
  readonly role: Role;
  readonly createdAt: number;
};

export function organizationView(row: StoredOrganization) {
  return {
    id: row.id,
    name: row.name,
    slug: row.slug,
    region: row.region,
    is_personal: row.isPersonal === 1,
    created_at: timestamp(row.createdAt),
  };
}

export function memberView(row: StoredMember) {
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    created_at: timestamp(row.createdAt),
  };
}
