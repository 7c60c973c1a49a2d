import type { Scope } from "../lib/caller.ts";
import type { KeyTermsRow } from "../lib/key-terms.ts";

/** What the book of a key's home says of it. Times are Unix ms. */
export type BookedKey = {
  readonly id: string;
  readonly org_id: string;
  readonly member_id: string;
  readonly scope: Scope;
  readonly rpm_limit: number;
  readonly revoked_at: number | null;
} & Partial<KeyTermsRow & SecretsRow>;

/** The newest secrets of a key, as `secretsOfText` reads them. */
export type SecretsRow = { readonly secrets: string | null };

/**
 * Where a register learns who its key is: this region's own book, or, for a global key away from home,
 * the key's home. Null: no such key. Both throw when they cannot be asked; `HomeUnreachable` says which.
 */
export type KeyBook = {
  /** Whether uses are noted there. Home notes them by itself, with each request that it authorises. */
  readonly isOurs: boolean;
  find(keyHash: string): Promise<BookedKey | null>;
  /** Notes a use, where the book is ours, and says what is true now. */
  touch(
    keyHash: string,
    usedAt: number,
  ): Promise<
    (Pick<BookedKey, "revoked_at" | "rpm_limit"> & Partial<KeyTermsRow & SecretsRow>) | null
  >;
};

/** The key's home gave no answer in time, or none that makes sense. */
export class HomeUnreachable extends Error {}
