import type { PeerSecret } from "../config.ts";

const KEY_ID_CHARACTERS = 12;
/** How a keyid looks: `eu:` and 12 characters of base64url. */
export const KEY_ID = `[a-z]{2,8}:[0-9A-Za-z_-]{${KEY_ID_CHARACTERS}}`;

const encoder = new TextEncoder();

type Prepared = { readonly hmac: CryptoKey; readonly keyId: string };
/** Made once per secret and isolate. The result is kept, not the promise: no request waits on another's. */
const prepared = new WeakMap<PeerSecret, Prepared>();

/** The HMAC-SHA-256 key of a secret. */
export async function hmacOf(secret: PeerSecret): Promise<CryptoKey> {
  return (await prepare(secret)).hmac;
}

/**
 * What names a secret in `keyid`: its sender and 72 bits of an HMAC made with it, over a text that no
 * signature is made over. Both regions derive it, and it says nothing about the secret.
 */
export async function keyIdOf(secret: PeerSecret): Promise<string> {
  return (await prepare(secret)).keyId;
}

async function prepare(secret: PeerSecret): Promise<Prepared> {
  const known = prepared.get(secret);
  if (known !== undefined) return known;
  const raw = encoder.encode(secret.secret);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const hmac = await crypto.subtle.importKey("raw", raw, algorithm, false, ["sign", "verify"]);
  const print = new Uint8Array(await crypto.subtle.sign("HMAC", hmac, encoder.encode("keyid")));
  const text = print.toBase64({ alphabet: "base64url" }).slice(0, KEY_ID_CHARACTERS);
  const fresh = { hmac, keyId: `${secret.sender}:${text}` };
  prepared.set(secret, fresh);
  return fresh;
}
