import { resealed, seal, unseal } from "../../shared/seal.ts";
import type { SealedFor, SealingSecret } from "../../shared/seal.ts";

const PURPOSE = "turnpike kept responses 1";
const KEY_BYTES = 32;

type DataKey = { readonly key: CryptoKey; readonly sealed: string };

/** Creates a key, encrypted with the first of KEY_SECRETS. */
export async function makeDataKey(owner: string, by: SealingSecret): Promise<DataKey> {
  const raw = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return { key: await imported(raw), sealed: await seal(raw.toBase64(), sealedFor(owner), by) };
}

export async function openDataKey(
  sealed: string,
  owner: string,
  secrets: readonly SealingSecret[],
): Promise<CryptoKey | null> {
  const raw = await unseal(sealed, sealedFor(owner), secrets);
  return raw === null ? null : imported(Uint8Array.fromBase64(raw));
}

/** Returns the key encrypted with the first of KEY_SECRETS. Returns null if none can decrypt it. */
export function reencryptDataKey(
  sealed: string,
  owner: string,
  secrets: readonly SealingSecret[],
): Promise<string | null> {
  return resealed(sealed, sealedFor(owner), secrets);
}

function sealedFor(owner: string): SealedFor {
  return { purpose: PURPOSE, owner };
}

function imported(raw: Uint8Array): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt", "decrypt"]);
}
