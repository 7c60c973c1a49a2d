import type { KeySecret } from "../../shared/config/config.ts";
import { isSameSecret, computeHmac } from "../keys/api-key.ts";
import { assert } from "../../shared/assert.ts";
import type { Role } from "../../shared/caller.ts";
import { findRegion } from "../../shared/regions.ts";
import type { Region } from "../../shared/regions.ts";

export type Invitation = {
  readonly id: string;
  readonly orgId: string;
  readonly role: Role;
  /** The verified address that the person must have. Null if anyone with the link can accept. */
  readonly email: string | null;
  /** The existing member who gets a login, or null for a new member. */
  readonly memberId: string | null;
  /** The inviting member, or null for an operator. */
  readonly invitedBy: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
};

/**
 * A token's format: `svc_iv_<region>_`, the signing secret's ID, the invitation's ID without its
 * prefix, and the tag.
 */
const TOKEN_PATTERN = /^svc_iv_([a-z]{2,8})_([0-9A-Za-z])([0-9A-Za-z]{24})([\w-]{43})$/;

export async function createInvitationToken(
  id: string,
  region: Region,
  secrets: readonly KeySecret[],
): Promise<string> {
  const [secret] = secrets;
  assert(secret !== undefined, "a token needs a secret");
  const tag = await computeTag(secret, region, id);
  return `svc_iv_${region}_${secret.id}${id.slice("inv_".length)}${tag}`;
}

/** Returns the invitation's ID if the token is valid in this region, else null. */
export async function readInvitationToken(
  token: string,
  region: Region,
  secrets: readonly KeySecret[],
): Promise<string | null> {
  const [, name, secretId, rest, tag = ""] = TOKEN_PATTERN.exec(token) ?? [];
  const secret = secrets.find(({ id }) => id === secretId);
  if (secret === undefined || findRegion(name) !== region) return null;
  const id = `inv_${rest ?? ""}`;
  return isSameSecret(tag, await computeTag(secret, region, id)) ? id : null;
}

async function computeTag(secret: KeySecret, region: Region, id: string): Promise<string> {
  const tag = await computeHmac(secret, "invitation", `${region} ${id}`);
  return tag.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** Masks an address for other people, as `a…@example.com`. */
export function maskAddress(email: string): string {
  return `${email.slice(0, 1)}…${email.slice(email.indexOf("@"))}`;
}
