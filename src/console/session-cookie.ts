import type { KeySecret } from "../shared/config/config.ts";
import { isSameSecret, computeHmac } from "../accounts/keys/api-key.ts";
import type { Region } from "../shared/regions.ts";
import { assert } from "../shared/assert.ts";
import { randomBase62 } from "../shared/id.ts";
import { sha256Hex } from "../shared/hash.ts";

/**
 * Returns the cookie's name. `__Host-` restricts the cookie to this host and HTTPS. The region
 * distinguishes cookies of regions on different ports of a host.
 */
const cookieName = (region: Region): string => `__Host-turnpike-${region}`;
/** Lifetime of a session in seconds. Use doesn't extend it. */
export const SESSION_LIFETIME_S = 12 * 60 * 60;
/**
 * The cookie's attributes. With `Strict`, browsers wouldn't send it after an identity provider's
 * redirect. `requireConsolePage` rejects other cross-site requests.
 */
const ATTRIBUTES = "HttpOnly; Secure; SameSite=Lax; Path=/";
/**
 * The cookie's value: the ID of the signing secret, 256 random bits, the account's hash, and the
 * tag in hex.
 */
const COOKIE_VALUE = /^(([0-9A-Za-z])[0-9A-Za-z]{43}([0-9a-f]{64}))([0-9a-f]{64})$/;

type CookieConfig = { readonly keySecrets: readonly KeySecret[]; readonly region: Region };

export type SessionLocation = { readonly account: string; readonly session: string };

export async function mintSessionCookie(
  { keySecrets: secrets, region }: CookieConfig,
  account: string,
  ageS: number,
): Promise<{ readonly header: string } & SessionLocation> {
  const [secret] = secrets;
  assert(secret !== undefined, "a cookie needs a secret");
  const untagged = secret.id + randomBase62(43) + account;
  const value = untagged + (await tagOf(secret, region, untagged));
  return {
    header: `${cookieName(region)}=${value}; ${ATTRIBUTES}; Max-Age=${ageS}`,
    account,
    session: await sha256Hex(value),
  };
}

export function createExpiredSessionCookie(region: Region): string {
  return `${cookieName(region)}=; ${ATTRIBUTES}; Max-Age=0`;
}

export function hasSessionCookie(region: Region, cookies = ""): boolean {
  return cookies.includes(`${cookieName(region)}=`);
}

/**
 * Returns a cookie's account and session, or null for a missing, repeated or forged cookie. Needs
 * no I/O.
 */
export async function readSessionCookie(
  cookies = "",
  { keySecrets: secrets, region }: CookieConfig,
): Promise<SessionLocation | null> {
  const cookiePattern = new RegExp(`(?:^|;)\\s*${cookieName(region)}=([^;\\s]*)`, "g");
  const [first, second] = cookies.matchAll(cookiePattern);
  const value = first?.[1] ?? "";
  const [, untagged = "", secretId, account = "", tag = ""] = COOKIE_VALUE.exec(value) ?? [];
  const secret = secrets.find(({ id }) => id === secretId);
  if (secret === undefined || second !== undefined) return null;
  if (!isSameSecret(tag, await tagOf(secret, region, untagged))) return null;
  return { account, session: await sha256Hex(value) };
}

/** Returns the HMAC that authenticates a cookie. Its label prevents its use for an API key. */
async function tagOf(secret: KeySecret, region: Region, untagged: string): Promise<string> {
  return (await computeHmac(secret, `console ${region}`, untagged)).toHex();
}
