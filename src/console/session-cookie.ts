import type { KeySecret } from "../config.ts";
import { assert } from "../lib/assert.ts";
import { randomBase62 } from "../lib/id.ts";

/** `__Host-`: only this host, only over https (or to this machine), only for the whole path. */
const NAME = "__Host-turnpike";
const ATTRIBUTES = "HttpOnly; Secure; SameSite=Strict; Path=/";
/** The id of a secret, randomness (256 bits), and the tag in hex. */
const VALUE = /^([0-9A-Za-z])[0-9A-Za-z]{43}([0-9a-f]{64})$/;
/** Longer than any browser sends: nothing is searched in it. */
const HEADER_CHARACTERS_MAX = 16_384;

const encoder = new TextEncoder();

/** A session's cookie as the browser is given it, and the name of its object. */
export async function mintCookie(
  secrets: readonly KeySecret[],
  ageS: number,
): Promise<{ readonly header: string; readonly session: string }> {
  const [secret] = secrets;
  assert(secret !== undefined, "a cookie needs a secret");
  const untagged = secret.id + randomBase62(43);
  const tag = await crypto.subtle.sign("HMAC", await hmacOf(secret), bytesOf(untagged));
  const value = untagged + new Uint8Array(tag).toHex();
  return {
    header: `${NAME}=${value}; ${ATTRIBUTES}; Max-Age=${ageS}`,
    session: await sha256Hex(value),
  };
}

/** What ends a session in the browser. */
export const ENDED_COOKIE = `${NAME}=; ${ATTRIBUTES}; Max-Age=0`;

/** Whether a `Cookie` header has one of ours, good or not. */
export function hasSessionCookie(cookies: string | undefined): boolean {
  return cookies?.includes(`${NAME}=`) === true;
}

/**
 * The name of the object that keeps the session of this `Cookie` header, or null for one that holds none of
 * ours. A made-up one is found out by its tag, under the secret that it names: it costs no I/O.
 */
export async function sessionOf(
  cookies: string | undefined,
  secrets: readonly KeySecret[],
): Promise<string | null> {
  if (cookies === undefined || cookies.length > HEADER_CHARACTERS_MAX) return null;
  const values = cookies.split(";").flatMap((pair) => {
    const text = pair.trim();
    return text.startsWith(`${NAME}=`) ? [text.slice(NAME.length + 1)] : [];
  });
  const [value = ""] = values;
  const [, secretId, tag] = VALUE.exec(value) ?? [];
  const secret = secrets.find(({ id }) => id === secretId);
  if (values.length !== 1 || secret === undefined || tag === undefined) return null;
  const untagged = value.slice(0, -tag.length);
  const isOurs = await crypto.subtle.verify(
    "HMAC",
    await hmacOf(secret),
    Uint8Array.fromHex(tag),
    bytesOf(untagged),
  );
  return isOurs ? sha256Hex(value) : null;
}

/** SHA-256 of a text, in hex. */
export async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", encoder.encode(text));
  return new Uint8Array(digest).toHex();
}

/** With a label of its own: what is signed here can pass for no key's tag or hash. */
function bytesOf(untagged: string): Uint8Array {
  return encoder.encode(`console\0${untagged}`);
}

function hmacOf({ secret }: KeySecret): Promise<CryptoKey> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, [
    "sign",
    "verify",
  ]);
}
