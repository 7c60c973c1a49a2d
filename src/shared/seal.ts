const IV_BYTES = 12;
const encoder = new TextEncoder();

export type EncryptionSecret = { readonly id: string; readonly secret: string };

/** The purpose of an encrypted text, which selects its key, and its owner. */
export type EncryptionPurpose = { readonly purpose: string; readonly owner: string };

/**
 * Encrypts a text with AES-256-GCM, with a key derived by HKDF. Returns `<secret ID>.<base64 of IV
 * and ciphertext>`.
 */
export async function encryptText(
  text: string,
  what: EncryptionPurpose,
  by: EncryptionSecret,
): Promise<string> {
  const key = await keyOf(by.secret, what.purpose);
  const sealed = await encryptBytes(encoder.encode(text), key, what.owner);
  return `${by.id}.${sealed.toBase64()}`;
}

/** Decrypts a text. Returns null if no secret matches or the owner differs. */
export async function decryptText(
  sealed: string,
  what: EncryptionPurpose,
  secrets: readonly EncryptionSecret[],
): Promise<string | null> {
  const [id, text = ""] = sealed.split(".");
  const source = secrets.find((one) => one.id === id);
  if (source === undefined) return null;
  try {
    const key = await keyOf(source.secret, what.purpose);
    const opened = await decryptBytes(Uint8Array.fromBase64(text), key, what.owner);
    return opened === null ? null : new TextDecoder().decode(opened);
  } catch {
    return null;
  }
}

/** Encrypts a text again with the first secret. Returns null if it can't be decrypted. */
export async function reencryptText(
  sealed: string,
  what: EncryptionPurpose,
  secrets: readonly EncryptionSecret[],
): Promise<string | null> {
  const [first] = secrets;
  if (first === undefined || sealed.startsWith(`${first.id}.`)) return sealed;
  const opened = await decryptText(sealed, what, secrets);
  return opened === null ? null : encryptText(opened, what, first);
}

export async function encryptBytes(
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

export async function decryptBytes(
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
