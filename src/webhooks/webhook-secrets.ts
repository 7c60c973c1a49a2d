import type { KeySecret } from "../config.ts";
import { hmacKey, hmacSha256 } from "../lib/hmac.ts";

/** A webhook's secret as the book keeps it: encrypted, the newest first. `until`: when it ends (Unix ms); null: it does not. */
export type SealedSecret = { readonly sealed: string; readonly until: number | null };

const PREFIX = "whsec_";
const SECRET_BYTES = 32;
const IV_BYTES = 12;
const INFO = "turnpike webhook secrets 1";
const encoder = new TextEncoder();

/** A new secret in the form of Standard Webhooks: `whsec_` and 32 random bytes in base64. */
export function mintSecret(): string {
  return PREFIX + crypto.getRandomValues(new Uint8Array(SECRET_BYTES)).toBase64();
}

/**
 * Encrypts a secret with AES-256-GCM under a key that HKDF derives from the first of KEY_SECRETS, bound to its
 * webhook: `<id of the secret>.<base64 of iv and ciphertext>`.
 */
export async function seal(
  secret: string,
  webhookId: string,
  { id, secret: source }: KeySecret,
): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(webhookId) };
  const sealed = await crypto.subtle.encrypt(
    algorithm,
    await keyOf(source),
    encoder.encode(secret),
  );
  const whole = new Uint8Array(IV_BYTES + sealed.byteLength);
  whole.set(iv);
  whole.set(new Uint8Array(sealed), IV_BYTES);
  return `${id}.${whole.toBase64()}`;
}

/** The secret; null when KEY_SECRETS no longer has what it was encrypted under, or it is another webhook's. */
export async function unseal(
  sealed: string,
  webhookId: string,
  keySecrets: readonly KeySecret[],
): Promise<string | null> {
  const [id, text = ""] = sealed.split(".");
  const source = keySecrets.find((one) => one.id === id);
  if (source === undefined) return null;
  try {
    const whole = Uint8Array.fromBase64(text);
    const iv = whole.subarray(0, IV_BYTES);
    const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(webhookId) };
    const key = await keyOf(source.secret);
    const opened = await crypto.subtle.decrypt(algorithm, key, whole.subarray(IV_BYTES));
    return new TextDecoder().decode(opened);
  } catch {
    return null;
  }
}

/** Encrypted under the first of KEY_SECRETS, as it is or anew; null when it cannot be read. */
export async function resealed(
  secret: SealedSecret,
  webhookId: string,
  keySecrets: readonly KeySecret[],
): Promise<SealedSecret | null> {
  const [first] = keySecrets;
  if (first === undefined || secret.sealed.startsWith(`${first.id}.`)) return secret;
  const opened = await unseal(secret.sealed, webhookId, keySecrets);
  return opened === null ? null : { ...secret, sealed: await seal(opened, webhookId, first) };
}

async function keyOf(source: string): Promise<CryptoKey> {
  const material = await crypto.subtle.importKey("raw", encoder.encode(source), "HKDF", false, [
    "deriveKey",
  ]);
  const info = encoder.encode(INFO);
  const hkdf = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  const aes = { name: "AES-GCM", length: 256 };
  return crypto.subtle.deriveKey(hkdf, material, aes, false, ["encrypt", "decrypt"]);
}

/** What is signed and sent: the event's id, the second it is sent in, its JSON. */
export type SignedMessage = {
  readonly id: string;
  readonly seconds: number;
  readonly body: string;
};

/** `webhook-signature` of Standard Webhooks: a `v1,` for each secret, so that a receiver may know either. */
export async function signatures(
  { id, seconds, body }: SignedMessage,
  secrets: readonly string[],
): Promise<string> {
  const signed = secrets.map(async (secret) => {
    const raw = Uint8Array.fromBase64(secret.slice(PREFIX.length));
    const tag = await hmacSha256(await hmacKey(raw), `${id}.${seconds}.${body}`);
    return `v1,${tag.toBase64()}`;
  });
  return (await Promise.all(signed)).join(" ");
}
