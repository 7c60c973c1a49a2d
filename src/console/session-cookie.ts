import type { KeySecret } from "../shared/config/config.ts";
import { hmacOf, isSameSecret, sign } from "../accounts/keys/api-key.ts";
import type { Region } from "../shared/regions.ts";
import { assert } from "../shared/assert.ts";
import { randomBase62 } from "../shared/id.ts";
import { sha256Hex } from "../shared/hash.ts";

/**
 * `__Host-` restricts the cookie to this host and HTTPS. The region is included because ports of a
 * host share cookies.
 */
const nameOf = (region: Region): string => `__Host-turnpike-${region}`;
/** Seconds that a session lives. Calls don't extend it. */
export const SESSION_S = 12 * 60 * 60;
/**
 * `Strict` would withhold the cookie after a redirect from an identity provider. `requireOwnPage`
 * rejects other cross-site requests.
 */
const ATTRIBUTES = "HttpOnly; Secure; SameSite=Lax; Path=/";
/** The secret's ID, 256 random bits, the account's hash, and the tag in hex. */
const VALUE = /^(([0-9A-Za-z])[0-9A-Za-z]{43}([0-9a-f]{64}))([0-9a-f]{64})$/;

type CookieConfig = { readonly keySecrets: readonly KeySecret[]; readonly region: Region };

export type SessionPlace = { readonly account: string; readonly session: string };

export async function mintCookie(
  { keySecrets: secrets, region }: CookieConfig,
  account: string,
  ageS: number,
): Promise<{ readonly header: string } & SessionPlace> {
  const [secret] = secrets;
  assert(secret !== undefined, "a cookie needs a secret");
  const untagged = secret.id + randomBase62(43) + account;
  const value = untagged + (await tagOf(secret, region, untagged));
  return {
    header: `${nameOf(region)}=${value}; ${ATTRIBUTES}; Max-Age=${ageS}`,
    account,
    session: await sha256Hex(value),
  };
}

export function expiredCookie(region: Region): string {
  return `${nameOf(region)}=; ${ATTRIBUTES}; Max-Age=0`;
}

export function hasSessionCookie(region: Region, cookies = ""): boolean {
  return cookies.includes(`${nameOf(region)}=`);
}

/** Returns the location of a cookie's session; null for none, two or a forged one. Needs no I/O. */
export async function readSessionCookie(
  cookies = "",
  { keySecrets: secrets, region }: CookieConfig,
): Promise<SessionPlace | null> {
  const ours = new RegExp(`(?:^|;)\\s*${nameOf(region)}=([^;\\s]*)`, "g");
  const [first, second] = cookies.matchAll(ours);
  const value = first?.[1] ?? "";
  const [, untagged = "", secretId, account = "", tag = ""] = VALUE.exec(value) ?? [];
  const secret = secrets.find(({ id }) => id === secretId);
  if (secret === undefined || second !== undefined) return null;
  if (!isSameSecret(tag, await tagOf(secret, region, untagged))) return null;
  return { account, session: await sha256Hex(value) };
}

/** Uses its own label, so a tag signed here is never valid as a key's tag or hash. */
async function tagOf(secret: KeySecret, region: Region, untagged: string): Promise<string> {
  return (await sign(await hmacOf(secret), `console ${region}`, untagged)).toHex();
}
