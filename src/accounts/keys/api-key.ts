import type { KeySecret } from "../../shared/config/config.ts";
import { assert } from "../../shared/assert.ts";
import type { VerifiedKey } from "../../shared/caller.ts";
import { importHmacKey, hmacSha256 } from "../../shared/hmac.ts";
import { BASE62_DIGITS, randomBase62 } from "../../shared/id.ts";
import { findRegion, REGIONS } from "../../shared/regions.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";
import type { KeyScope } from "../../shared/key.ts";
import type { Region } from "../../shared/regions.ts";
import { hexOf } from "../../shared/hash.ts";

const RANDOM_CHARACTERS = 31;
const TAG_CHARACTERS = 8;
const PREFIX_RANDOM_CHARACTERS = 4;
/** Base62 length of a key's root (256 bits). */
const ROOT_CHARACTERS = 43;
/** The format of a key. A rotated key also contains its root, before the signature. */
const KEY_PATTERN = new RegExp(
  `^svc_sk_(gbl_)?(${REGIONS.join("|")})_live_([0-9A-Za-z])[0-9A-Za-z]{31}([0-9A-Za-z]{${ROOT_CHARACTERS}})?[0-9A-Za-z]{8}$`,
);

/** A new key. `key` is the secret, which is never stored. `hash` names the key's Durable Object. */
export type MintedKey = { readonly key: string; readonly hash: string; readonly prefix: string };

/**
 * Creates a key: prefix, ID of the signing secret, 31 random base62 characters (184 bits), and a
 * signature (the tag).
 */
export async function mintKey(options: {
  readonly home: Region;
  readonly scope: KeyScope;
  readonly secrets: readonly KeySecret[];
}): Promise<MintedKey> {
  const [secret] = options.secrets;
  assert(secret !== undefined, "minting a key needs a secret");
  const untagged =
    scopePrefix(options.home, options.scope) + secret.id + randomBase62(RANDOM_CHARACTERS);
  return signKey(untagged, secret);
}

type RotatedSecretSource = {
  readonly home: Region;
  readonly scope: KeyScope;
  readonly root: string;
  readonly number: number;
  readonly name: string;
  readonly signedBy: KeySecret;
};

/**
 * Derives a key's next secret from the root, the secret's number and the Idempotency-Key, so a
 * retry returns the same secret.
 */
export async function mintRotatedSecret(of: RotatedSecretSource): Promise<MintedKey> {
  const source = `${of.root}\0${of.number}\0${of.name}`;
  const [first, second] = [
    await computeHmac(of.signedBy, "rotated", source),
    await computeHmac(of.signedBy, "rotated more", source),
  ];
  const derived = encodeBase62(new Uint8Array([...first, ...second]), RANDOM_CHARACTERS);
  const untagged =
    scopePrefix(of.home, of.scope) +
    of.signedBy.id +
    derived +
    rootToBase62(BigInt(`0x${of.root}`));
  return signKey(untagged, of.signedBy);
}

async function signKey(untagged: string, secret: KeySecret): Promise<MintedKey> {
  const key = untagged + (await computeTag(secret, untagged));
  return { key, hash: await hashKey(secret, key), prefix: listedPrefixOfKey(key) };
}

function rootToBase62(value: bigint): string {
  let text = "";
  for (let rest = value; text.length < ROOT_CHARACTERS; rest /= 62n) {
    text = BASE62_DIGITS.charAt(Number(rest % 62n)) + text;
  }
  return text;
}

function rootFromBase62(text: string): string {
  let value = 0n;
  for (const character of text) value = value * 62n + BigInt(BASE62_DIGITS.indexOf(character));
  return value.toString(16).padStart(64, "0");
}

/**
 * Verifies a key's format and tag without I/O. Doesn't check whether the key is active. Returns
 * null for an invalid key. A forged key passes with a probability of 62^-8.
 */
export async function verifyKey(
  text: string,
  secrets: readonly KeySecret[],
): Promise<VerifiedKey | null> {
  const cache = verifiedKeysOf(secrets);
  const cached = cache.get(text);
  if (cached !== undefined) return cached;
  const verified = await verifyUncached(text, secrets);
  if (verified === null) return null;
  evictOldest(cache, VERIFIED_KEYS_MAX);
  cache.set(text, verified);
  return verified;
}

const VERIFIED_KEYS_MAX = 2000;
const verifiedKeys = new WeakMap<readonly KeySecret[], Map<string, VerifiedKey>>();

function verifiedKeysOf(secrets: readonly KeySecret[]): Map<string, VerifiedKey> {
  const known = verifiedKeys.get(secrets) ?? new Map<string, VerifiedKey>();
  verifiedKeys.set(secrets, known);
  return known;
}

async function verifyUncached(
  text: string,
  secrets: readonly KeySecret[],
): Promise<VerifiedKey | null> {
  const match = KEY_PATTERN.exec(text);
  if (match === null) return null;
  const [, global, name, secretId, root] = match;
  const home = findRegion(name);
  if (home === undefined) return null;
  const secret = secrets.find((candidate) => candidate.id === secretId);
  if (secret === undefined) return null;
  const untagged = text.slice(0, -TAG_CHARACTERS);
  if (!isSameSecret(text.slice(-TAG_CHARACTERS), await computeTag(secret, untagged))) return null;
  const hash = await hashKey(secret, text);
  const scope = global === undefined ? "regional" : "global";
  return root === undefined
    ? { hash, home, scope }
    : { hash: rootFromBase62(root), home, scope, shown: { secret: hash } };
}

const PREFIX_PATTERN = new RegExp(
  `^svc_sk_(?:gbl_)?(${REGIONS.join("|")})_live_[0-9A-Za-z]{${PREFIX_RANDOM_CHARACTERS}}`,
);

/** Shortens a key to its listed prefix. Returns any other text unchanged. */
export function listedPrefixOrText(text: string): string {
  return PREFIX_PATTERN.exec(text)?.[0] ?? text;
}

/** Returns the home region in a key's prefix, or null. */
export function parseHomeRegion(text: string): Region | null {
  return findRegion(PREFIX_PATTERN.exec(text)?.[1]) ?? null;
}

/** Returns a key's first characters, as lists show them. */
export function listedPrefixOfKey(key: string): string {
  return key.slice(0, key.indexOf("_live_") + "_live_".length + PREFIX_RANDOM_CHARACTERS);
}

function scopePrefix(home: Region, scope: KeyScope): string {
  return scope === "global" ? `svc_sk_gbl_${home}_live_` : `svc_sk_${home}_live_`;
}

/** Returns a tag of 8 base62 characters with a modulo bias below 0.1%. */
async function computeTag(secret: KeySecret, untagged: string): Promise<string> {
  return encodeBase62(await computeHmac(secret, "tag", untagged), TAG_CHARACTERS);
}

export function encodeBase62(bytes: Uint8Array, length: number): string {
  let text = "";
  for (let i = 0; i < length; i++) {
    text += BASE62_DIGITS.charAt(
      ((bytes[2 * i] ?? 0) * 256 + (bytes[2 * i + 1] ?? 0)) % BASE62_DIGITS.length,
    );
  }
  return text;
}

async function hashKey(secret: KeySecret, key: string): Promise<string> {
  return hexOf(await computeHmac(secret, "hash", key));
}

const encoder = new TextEncoder();

/** Returns an HMAC-SHA-256 of the label and text. */
export async function computeHmac(
  secret: KeySecret,
  label: string,
  text: string,
): Promise<Uint8Array> {
  return hmacSha256(await importSecret(secret), `${label}\0${text}`);
}

/** Compares secrets in constant time. */
export function isSameSecret(one: string, other: string): boolean {
  const [left, right] = [encoder.encode(one), encoder.encode(other)];
  return left.length === right.length && crypto.subtle.timingSafeEqual(left, right);
}

/**
 * Imported HMAC keys. The cache holds no promises, because requests on Workers can't await each
 * other's I/O.
 */
const importedSecrets = new WeakMap<KeySecret, CryptoKey>();

async function importSecret(secret: KeySecret): Promise<CryptoKey> {
  const known = importedSecrets.get(secret);
  if (known !== undefined) return known;
  const importedKey = await importHmacKey(secret.secret);
  importedSecrets.set(secret, importedKey);
  return importedKey;
}
