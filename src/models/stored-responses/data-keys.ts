import { reencryptText, encryptText, decryptText } from "../../shared/encryption.ts";
import type { EncryptionPurpose, EncryptionSecret } from "../../shared/encryption.ts";

const PURPOSE = "turnpike kept responses 1";
const KEY_BYTES = 32;

type DataKey = { readonly key: CryptoKey; readonly sealed: string };

/** Creates a data key and encrypts it with the first of KEY_SECRETS. */
export async function createDataKey(owner: string, by: EncryptionSecret): Promise<DataKey> {
  const raw = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return {
    key: await importKey(raw),
    sealed: await encryptText(raw.toBase64(), encryptionPurpose(owner), by),
  };
}

export async function decryptDataKey(
  sealed: string,
  owner: string,
  secrets: readonly EncryptionSecret[],
): Promise<CryptoKey | null> {
  const raw = await decryptText(sealed, encryptionPurpose(owner), secrets);
  return raw === null ? null : importKey(Uint8Array.fromBase64(raw));
}

/**
 * Encrypts the data key again with the first of KEY_SECRETS. Returns null if no secret decrypts the
 * key.
 */
export function reencryptDataKey(
  sealed: string,
  owner: string,
  secrets: readonly EncryptionSecret[],
): Promise<string | null> {
  return reencryptText(sealed, encryptionPurpose(owner), secrets);
}

function encryptionPurpose(owner: string): EncryptionPurpose {
  return { purpose: PURPOSE, owner };
}

function importKey(raw: Uint8Array): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt", "decrypt"]);
}
