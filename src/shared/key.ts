import { parseStoredJson } from "./stored-json.ts";
import * as z from "zod/mini";
import type { KeyTerms } from "./key-terms.ts";

/** The hash of a key's first secret. It identifies the key permanently. */
export const keyHashSchema = z
  .string()
  .check(z.regex(/^[0-9a-f]{64}$/, "must be 64 hex characters"));

/** The regions in which a key works. */
export type KeyScope = "regional" | "global";

export type Key = {
  readonly keyId: string;
  readonly orgId: string;
  readonly memberId: string;
  readonly scope: KeyScope;
  /** Maximum requests in any 60 s. */
  readonly rpmLimit: number;
  /** Empty at peers, because only the home region enforces limits. */
  readonly terms: KeyTerms;
  readonly secrets: KeySecrets;
};

/** The active secrets of a rotated key, newest first. Null for a key that was never rotated. */
export type KeySecrets = readonly KeySecret[] | null;
type KeySecret = { readonly hash: string; readonly retiresAt: number | null };

export function isActiveSecret(
  { keyHash, secrets }: { readonly keyHash: string; readonly secrets: KeySecrets },
  secret: string,
  nowMs: number,
): boolean {
  if (secrets === null) return secret === keyHash;
  const match = secrets.find(({ hash }) => hash === secret);
  return match !== undefined && (match.retiresAt === null || match.retiresAt > nowMs);
}

export function keySecretsToJson(secrets: KeySecrets): string | null {
  return secrets === null
    ? null
    : JSON.stringify(secrets.map(({ hash, retiresAt }) => [hash, retiresAt]));
}

export function keySecretsFromJson(text: string | null | undefined): KeySecrets {
  const pairs = parseStoredJson<readonly (readonly [string, number | null])[]>(text ?? "[]");
  return pairs.length === 0 ? null : pairs.map(([hash, retiresAt]) => ({ hash, retiresAt }));
}
