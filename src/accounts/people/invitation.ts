import type { KeySecret } from "../../shared/config/config.ts";
import { hmacOf, isSameSecret, sign } from "../keys/api-key.ts";
import { assert } from "../../shared/assert.ts";
import type { Role } from "../../shared/caller.ts";
import { regionNamed } from "../../shared/regions.ts";
import type { Region } from "../../shared/regions.ts";

/** An invitation as the book has it. Times are Unix ms. */
export type Invitation = {
  readonly id: string;
  readonly orgId: string;
  readonly role: Role;
  /** Whose proven address it must be; null: whoever has the link. */
  readonly email: string | null;
  /** The member that gets a log-in; null: a new one. */
  readonly memberId: string | null;
  /** A member's id; null: an operator. */
  readonly invitedBy: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
};

/** `svc_iv_<region>_`, the id of a secret, what follows `inv_` in the invitation's id, and the tag in base64url. */
const TOKEN = /^svc_iv_([a-z]{2,8})_([0-9A-Za-z])([0-9A-Za-z]{24})([\w-]{43})$/;

/** The token of an invitation's link: whoever has it may see the invitation. */
export async function invitationToken(
  id: string,
  region: Region,
  secrets: readonly KeySecret[],
): Promise<string> {
  const [secret] = secrets;
  assert(secret !== undefined, "a token needs a secret");
  const tag = await tagOf(secret, region, id);
  return `svc_iv_${region}_${secret.id}${id.slice("inv_".length)}${tag}`;
}

/** The id that a token of this region names; null for one that is forged, or another region's: it costs no I/O. */
export async function readInvitationToken(
  token: string,
  region: Region,
  secrets: readonly KeySecret[],
): Promise<string | null> {
  const [, name, secretId, rest, tag = ""] = TOKEN.exec(token) ?? [];
  const secret = secrets.find(({ id }) => id === secretId);
  if (secret === undefined || regionNamed(name) !== region) return null;
  const id = `inv_${rest ?? ""}`;
  return isSameSecret(tag, await tagOf(secret, region, id)) ? id : null;
}

async function tagOf(secret: KeySecret, region: Region, id: string): Promise<string> {
  const tag = await sign(await hmacOf(secret), "invitation", `${region} ${id}`);
  return tag.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** An address as who has no right to it sees it: `a…@example.com`. */
export function maskAddress(email: string): string {
  return `${email.slice(0, 1)}…${email.slice(email.indexOf("@"))}`;
}
