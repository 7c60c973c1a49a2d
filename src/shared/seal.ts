const IV_BYTES = 12;
const encoder = new TextEncoder();

/** A deployment secret and its one-character ID. */
export type SealingSecret = { readonly id: string; readonly secret: string };

/** The purpose of a seal, which selects its key, and its owner, which it is bound to. */
export type SealedFor = { readonly purpose: string; readonly owner: string };

/**
 * Encrypts a short text with AES-256-GCM under a key derived by HKDF: `<secret ID>.<base64 of iv and
 * ciphertext>`.
 */
export async function seal(text: string, what: SealedFor, by: SealingSecret): Promise<string> {
  const key = await keyOf(by.secret, what.purpose);
  const sealed = await encrypt(encoder.encode(text), key, what.owner);
  return `${by.id}.${sealed.toBase64()}`;
}

/** Decrypts, or returns null if no secret matches or the owner differs. */
export async function unseal(
  sealed: string,
  what: SealedFor,
  secrets: readonly SealingSecret[],
): Promise<string | null> {
  const [id, text = ""] = sealed.split(".");
  const source = secrets.find((one) => one.id === id);
  if (source === undefined) return null;
  try {
    const key = await keyOf(source.secret, what.purpose);
    const opened = await decrypt(Uint8Array.fromBase64(text), key, what.owner);
    return opened === null ? null : new TextDecoder().decode(opened);
  } catch {
    return null;
  }
}

/** Reseals under the first secret if needed. Returns null if it can't be read. */
export async function resealed(
  sealed: string,
  what: SealedFor,
  secrets: readonly SealingSecret[],
): Promise<string | null> {
  const [first] = secrets;
  if (first === undefined || sealed.startsWith(`${first.id}.`)) return sealed;
  const opened = await unseal(sealed, what, secrets);
  return opened === null ? null : seal(opened, what, first);
}

/** Returns iv and ciphertext, bound to `owner`. */
export async function encrypt(
  bytes: Uint8Array,
  key: CryptoKey,
  owner: string,
): Promise<Uint8Array> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(owner) };
  const sealed = await crypto.subtle.encrypt(algorithm, key, bytes);
  const whole = new Uint8Array(IV_BYTES + sealed.byteLength);
  whole.set(iv);
  whole.set(new Uint8Array(sealed), IV_BYTES);
  return whole;
}

/** Decrypts, or returns null for another key, another owner or changed data. */
export async function decrypt(
  whole: Uint8Array,
  key: CryptoKey,
  owner: string,
): Promise<Uint8Array | null> {
  const iv = whole.subarray(0, IV_BYTES);
  const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(owner) };
  try {
    return new Uint8Array(await crypto.subtle.decrypt(algorithm, key, whole.subarray(IV_BYTES)));
  } catch {
    return null;
  }
}

async function keyOf(secret: string, purpose: string): Promise<CryptoKey> {
  const material = await crypto.subtle.importKey("raw", encoder.encode(secret), "HKDF", false, [
    "deriveKey",
  ]);
  const info = encoder.encode(purpose);
  const hkdf = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  const aes = { name: "AES-GCM", length: 256 };
  return crypto.subtle.deriveKey(hkdf, material, aes, false, ["encrypt", "decrypt"]);
}
