import type { KeySecret } from "../../shared/config/config.ts";
import { importHmacKey, hmacSha256 } from "../../shared/hmac.ts";
import { reencryptText, encryptText, decryptText } from "../../shared/encryption.ts";

/** An encrypted secret. `until` is its expiry (Unix ms), or null for the current secret. */
export type EncryptedSecret = { readonly sealed: string; readonly until: number | null };

const SECRET_PREFIX = "whsec_";
const SECRET_BYTES = 32;

/** Creates a Standard Webhooks secret: `whsec_` and 32 random bytes in base64. */
export function mintWebhookSecret(): string {
  return SECRET_PREFIX + crypto.getRandomValues(new Uint8Array(SECRET_BYTES)).toBase64();
}

function encryptionPurposeOf(webhookId: string) {
  return { purpose: "turnpike webhook secrets 1", owner: webhookId };
}

export function encryptWebhookSecret(
  secret: string,
  webhookId: string,
  by: KeySecret,
): Promise<string> {
  return encryptText(secret, encryptionPurposeOf(webhookId), by);
}

/**
 * Decrypts a secret. Returns null if it belongs to another webhook or its KEY_SECRETS entry was
 * removed.
 */
export function decryptWebhookSecret(
  sealed: string,
  webhookId: string,
  keySecrets: readonly KeySecret[],
): Promise<string | null> {
  return decryptText(sealed, encryptionPurposeOf(webhookId), keySecrets);
}

/** Returns the valid secrets, newest first, or none if the newest can't be decrypted. */
export async function decryptValidSecrets(
  { id, secrets }: { readonly id: string; readonly secrets: readonly EncryptedSecret[] },
  keySecrets: readonly KeySecret[],
  nowMs: number,
): Promise<readonly string[]> {
  const active = secrets.filter(({ until }) => until === null || until > nowMs);
  const decrypted = await Promise.all(
    active.map(({ sealed }) => decryptWebhookSecret(sealed, id, keySecrets)),
  );
  return decrypted[0] === null ? [] : decrypted.filter((secret) => secret !== null);
}

export async function reencryptWebhookSecret(
  secret: EncryptedSecret,
  webhookId: string,
  keySecrets: readonly KeySecret[],
): Promise<EncryptedSecret | null> {
  const sealed = await reencryptText(secret.sealed, encryptionPurposeOf(webhookId), keySecrets);
  return sealed === null ? null : { ...secret, sealed };
}

type SignedMessage = {
  readonly id: string;
  readonly seconds: number;
  readonly body: string;
};

export async function signMessage(
  { id, seconds, body }: SignedMessage,
  secrets: readonly string[],
): Promise<string> {
  const signatures = secrets.map(async (secret) => {
    const raw = Uint8Array.fromBase64(secret.slice(SECRET_PREFIX.length));
    const tag = await hmacSha256(await importHmacKey(raw), `${id}.${seconds}.${body}`);
    return `v1,${tag.toBase64()}`;
  });
  return (await Promise.all(signatures)).join(" ");
}
