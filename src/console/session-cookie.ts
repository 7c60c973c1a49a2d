import type { KeySecret } from "../shared/config/config.ts";
import { hmacOf, isSameSecret, sign } from "../accounts/keys/api-key.ts";
import type { Region } from "../shared/regions.ts";
import { assert } from "../shared/assert.ts";
import { randomBase62 } from "../shared/id.ts";
import { sha256Hex } from "../shared/hash.ts";

/**
 * `__Host-`: only this host, https (or this machine) and the whole path. With the region, because two regions
 * on one host share cookies across ports.
 */
const nameOf = (region: Region): string => `__Host-turnpike-${region}`;
/** The life of a session, which no call extends. */
export const SESSION_S = 12 * 60 * 60;
/**
 * `Lax`, because an identity provider on another site sends the browser back: `Strict` would withhold the cookie from that
 * navigation. `requireOwnPage` rejects all other requests of other sites.
 */
const ATTRIBUTES = "HttpOnly; Secure; SameSite=Lax; Path=/";
/** The id of a secret, randomness (256 bits), whose sessions it is one of, and the tag in hex. */
const VALUE = /^(([0-9A-Za-z])[0-9A-Za-z]{43}([0-9a-f]{64}))([0-9a-f]{64})$/;

type CookieConfig = { readonly keySecrets: readonly KeySecret[]; readonly region: Region };

/** A session's place: its object's name, and its own name there. */
export type SessionPlace = { readonly account: string; readonly session: string };

/** A session's cookie as the browser is given it, and the session's name in the object of its account. */
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

/** Returns the cookie that ends a session. */
export function expiredCookie(region: Region): string {
  return `${nameOf(region)}=; ${ATTRIBUTES}; Max-Age=0`;
}

/** Returns whether a `Cookie` header has one of ours, valid or not. */
export function hasSessionCookie(region: Region, cookies = ""): boolean {
  return cookies.includes(`${nameOf(region)}=`);
}

/**
 * Where the session of this `Cookie` header is kept, or null for one that holds none of ours, or two. A made-up one is found out by its tag, under the secret that it names: it costs no I/O.
 */
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

/** With a label of its own: what is signed here can pass for no key's tag or hash. */
async function tagOf(secret: KeySecret, region: Region, untagged: string): Promise<string> {
  return (await sign(await hmacOf(secret), `console ${region}`, untagged)).toHex();
}
