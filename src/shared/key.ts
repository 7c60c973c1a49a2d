import { storedJson } from "./stored-json.ts";
import * as z from "zod/mini";
import type { KeyTerms } from "./key-terms.ts";

/** What a key is known by everywhere but in its holder's hands: 64 hex characters. */
export const keyHashSchema = z
  .string()
  .check(z.regex(/^[0-9a-f]{64}$/, "must be 64 hex characters"));

export type Scope = "regional" | "global";

/**
 * A key as it is known, admitted and charged: one shape in the book's answers, the registers, the wallets and
 * between them. Only tables and the wire name its fields in snake_case.
 */
export type Key = {
  readonly keyId: string;
  readonly orgId: string;
  readonly memberId: string;
  readonly scope: Scope;
  /** Requests in any 60 s. */
  readonly rpmLimit: number;
  /** Away from the key's home always none: home decides by them. */
  readonly terms: KeyTerms;
  /** Away from the key's home always null: they are not known there. */
  readonly secrets: KeySecrets;
};

/**
 * The live secrets of a key that was ever rotated, the newest first; null for one that has its first alone.
 * `hash`: as of any key's text; that of the first secret is the key's own. `retiresAt`: Unix ms, null for the newest.
 */
export type KeySecrets = readonly KeySecret[] | null;
type KeySecret = { readonly hash: string; readonly retiresAt: number | null };

/** Whether a key may be used with a secret at this moment, by the clock of the key's home. */
export function isLiveSecret(
  { keyHash, secrets }: { readonly keyHash: string; readonly secrets: KeySecrets },
  secret: string,
  nowMs: number,
): boolean {
  if (secrets === null) return secret === keyHash;
  const known = secrets.find(({ hash }) => hash === secret);
  return known !== undefined && (known.retiresAt === null || known.retiresAt > nowMs);
}

/** Secrets as one text, for an object's own table. */
export function secretsText(secrets: KeySecrets): string | null {
  return secrets === null
    ? null
    : JSON.stringify(secrets.map(({ hash, retiresAt }) => [hash, retiresAt]));
}

/** Reads what `secretsText` wrote, and the same as the book gathers it: empty where a key was never rotated. */
export function secretsOfText(text: string | null | undefined): KeySecrets {
  const pairs = storedJson<readonly (readonly [string, number | null])[]>(text ?? "[]");
  return pairs.length === 0 ? null : pairs.map(([hash, retiresAt]) => ({ hash, retiresAt }));
}
