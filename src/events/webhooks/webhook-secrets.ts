import type { KeySecret } from "../../shared/config/config.ts";
import { hmacKey, hmacSha256 } from "../../shared/hmac.ts";
import { resealed, seal, unseal } from "../../shared/seal.ts";

/** A webhook's secret as stored: encrypted, newest first. `until`: its end (Unix ms); null for none. */
export type SealedSecret = { readonly sealed: string; readonly until: number | null };

const PREFIX = "whsec_";
const SECRET_BYTES = 32;

/** Makes a secret in the form of Standard Webhooks: `whsec_` and 32 random bytes in base64. */
export function mintSecret(): string {
  return PREFIX + crypto.getRandomValues(new Uint8Array(SECRET_BYTES)).toBase64();
}

const PURPOSE = "turnpike webhook secrets 1";

/** Seals a webhook's secret under the first of KEY_SECRETS, bound to its webhook. */
export function sealSecret(secret: string, webhookId: string, by: KeySecret): Promise<string> {
  return seal(secret, { purpose: PURPOSE, owner: webhookId }, by);
}

/** Returns the secret, or null if KEY_SECRETS lost its key or it belongs to another webhook. */
export function unsealSecret(
  sealed: string,
  webhookId: string,
  keySecrets: readonly KeySecret[],
): Promise<string | null> {
  return unseal(sealed, { purpose: PURPOSE, owner: webhookId }, keySecrets);
}

/**
 * Returns the signing secrets: the newest, and the one before during its overlap. None if the newest is
 * unreadable.
 */
export async function openSecrets(
  { id, secrets }: { readonly id: string; readonly secrets: readonly SealedSecret[] },
  keySecrets: readonly KeySecret[],
  nowMs: number,
): Promise<readonly string[]> {
  const active = secrets.filter(({ until }) => until === null || until > nowMs);
  const opened = await Promise.all(
    active.map(({ sealed }) => unsealSecret(sealed, id, keySecrets)),
  );
  return opened[0] === null ? [] : opened.filter((secret) => secret !== null);
}

/** Returns the secret sealed under the first of KEY_SECRETS, or null if it is unreadable. */
export async function resealedSecret(
  secret: SealedSecret,
  webhookId: string,
  keySecrets: readonly KeySecret[],
): Promise<SealedSecret | null> {
  const sealed = await resealed(secret.sealed, { purpose: PURPOSE, owner: webhookId }, keySecrets);
  return sealed === null ? null : { ...secret, sealed };
}

type SignedMessage = {
  readonly id: string;
  readonly seconds: number;
  readonly body: string;
};

/**
 * Returns `webhook-signature` of Standard Webhooks: a `v1,` per secret, so that a receiver may know either.
 */
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
