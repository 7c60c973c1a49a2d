import type { Failure, Result } from "../failure.ts";
import type { Paused } from "../paused.ts";
import type { Key, KeySecrets } from "../key.ts";
import type { KeyTerms } from "../key-terms.ts";
import type { PolicyLayer } from "../policy.ts";
import type { Session } from "../session.ts";
import type { Region } from "../regions.ts";

export type Identified = Result<Key>;

export type AdmittedKey = Pick<Key, "keyId" | "orgId" | "memberId" | "scope"> & {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly isLimited?: boolean;
  /** Set by the wallet, never by a key object. */
  readonly priceList?: string;
  readonly policies?: readonly PolicyLayer[];
  readonly paused?: Paused;
};
export type Admission =
  | ({ readonly ok: true } & AdmittedKey)
  | { readonly ok: false; readonly failure: Failure };

/** A session and its requests per minute. Null means its key's limit. */
export type PacedSession = Pick<Session, "id" | "rpmLimit">;

export type RegisterCalls = {
  /**
   * Admits one request. Never throws. Fails with `invalid_api_key`, `rate_limited`,
   * `storage_unavailable` or `home_region_unreachable` (first use of a global key outside its home
   * region). `secret` is a hash.
   */
  admit(home: Region | null, secret?: string, session?: PacedSession): Promise<Admission>;
  /**
   * Returns the key for another region, which counts the request. Records the use. Fails with
   * `conflict` for a repeated `writeId`.
   */
  identify(writeId: string | null, secret?: string): Promise<Identified>;
  whose(secret?: string): Promise<Identified>;
  /**
   * Records a use (Unix ms) in D1, even of a revoked key, and returns the current key. Fails like
   * `identify`.
   */
  refresh(usedAt: number): Promise<Identified>;
  /**
   * Revokes even an unknown key permanently. Returns the time of the first revocation. If storage
   * throws, the key may be revoked.
   */
  revoke(revokedAt: number): Promise<number>;
  /**
   * Writes the revocation to D1, with retries. Only for keys of this region. Throws if storage
   * fails.
   */
  tellBook(): Promise<void>;
  /** Applies a new rate limit immediately, also to earlier admissions. Throws if storage fails. */
  setLimit(rpmLimit: number): Promise<void>;
  setTerms(terms: KeyTerms): Promise<void>;
  setSecrets(secrets: KeySecrets): Promise<void>;
  /** Schedules the end of a secret durably, outside its home region. Throws if storage fails. */
  retire(secret: string, retiresAt: number): Promise<void>;
};
