const IV_BYTES = 12;
const encoder = new TextEncoder();

export type EncryptionSecret = { readonly id: string; readonly secret: string };

/**
 * The purpose and owner of encrypted text. The purpose selects the encryption key. Decryption
 * requires the same owner.
 */
export type EncryptionPurpose = { readonly purpose: string; readonly owner: string };

/**
 * Encrypts a text with AES-256-GCM, using a key derived by HKDF. Returns `<secret ID>.<base64 of IV
 * and ciphertext>`.
 */
export async function encryptText(
  text: string,
  purpose: EncryptionPurpose,
  by: EncryptionSecret,
): Promise<string> {
  const key = await deriveKey(by.secret, purpose.purpose);
  const encrypted = await encryptBytes(encoder.encode(text), key, purpose.owner);
  return `${by.id}.${encrypted.toBase64()}`;
}

/** Decrypts a text. Returns null if no secret matches or the owner differs. */
export async function decryptText(
  encrypted: string,
  purpose: EncryptionPurpose,
  secrets: readonly EncryptionSecret[],
): Promise<string | null> {
  const [id, text = ""] = encrypted.split(".");
  const source = secrets.find((one) => one.id === id);
  if (source === undefined) return null;
  try {
    const key = await deriveKey(source.secret, purpose.purpose);
    const decrypted = await decryptBytes(Uint8Array.fromBase64(text), key, purpose.owner);
    return decrypted === null ? null : new TextDecoder().decode(decrypted);
  } catch {
    return null;
  }
}

/** Returns the text encrypted with the first secret, or null if it can't be decrypted. */
export async function reencryptText(
  encrypted: string,
  purpose: EncryptionPurpose,
  secrets: readonly EncryptionSecret[],
): Promise<string | null> {
  const [first] = secrets;
  if (first === undefined || encrypted.startsWith(`${first.id}.`)) return encrypted;
  const decrypted = await decryptText(encrypted, purpose, secrets);
  return decrypted === null ? null : encryptText(decrypted, purpose, first);
}

export async function encryptBytes(
  bytes: Uint8Array,
  key: CryptoKey,
  owner: string,
): Promise<Uint8Array> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(owner) };
  const encrypted = await crypto.subtle.encrypt(algorithm, key, bytes);
  const ivAndData = new Uint8Array(IV_BYTES + encrypted.byteLength);
  ivAndData.set(iv);
  ivAndData.set(new Uint8Array(encrypted), IV_BYTES);
  return ivAndData;
}

/** Decrypts the result of `encryptBytes`. Returns null for another key or owner. */
export async function decryptBytes(
  ivAndData: Uint8Array,
  key: CryptoKey,
  owner: string,
): Promise<Uint8Array | null> {
  const iv = ivAndData.subarray(0, IV_BYTES);
  const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(owner) };
  try {
    return new Uint8Array(
      await crypto.subtle.decrypt(algorithm, key, ivAndData.subarray(IV_BYTES)),
    );
  } catch {
    return null;
  }
}

async function deriveKey(secret: string, purpose: string): Promise<CryptoKey> {
  const material = await crypto.subtle.importKey("raw", encoder.encode(secret), "HKDF", false, [
    "deriveKey",
  ]);
  const info = encoder.encode(purpose);
  const hkdf = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  const aes = { name: "AES-GCM", length: 256 };
  return crypto.subtle.deriveKey(hkdf, material, aes, false, ["encrypt", "decrypt"]);
}
