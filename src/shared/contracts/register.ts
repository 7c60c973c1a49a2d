import type { AdmittedRequest } from "../caller.ts";
import type { Refusal, Result } from "../failure.ts";
import type { Key, KeySecrets } from "../key.ts";
import type { KeyTerms } from "../key-terms.ts";
import type { RateLimitState } from "../key-status.ts";
import type { Session } from "../session.ts";
import type { Region } from "../regions.ts";

export type KeyResult = Result<Key>;

/** An admitted key and its remaining requests under the rate limit. */
export type AdmittedKey = Pick<Key, "keyId" | "orgId" | "memberId" | "scope"> &
  RateLimitState &
  Omit<AdmittedRequest, "caller" | "rate" | "tokens">;
export type KeyAdmissionResult = ({ readonly ok: true } & AdmittedKey) | Refusal;

/** A session and its maximum requests per minute (null: the key's limit). */
export type RateLimitedSession = Pick<Session, "id" | "rpmLimit">;

export type KeyRegisterMethods = {
  /**
   * Admits one request. Never throws. Fails with `invalid_api_key`, `rate_limited`,
   * `storage_unavailable` or `home_region_unreachable`. `secret` is a hash.
   */
  admit(
    home: Region | null,
    secret?: string,
    session?: RateLimitedSession,
  ): Promise<KeyAdmissionResult>;
  /**
   * Records the use, and returns the key. The calling peer counts the request. Fails with
   * `conflict` for a repeated `writeId`.
   */
  identify(writeId: string | null, secret?: string): Promise<KeyResult>;
  whose(secret?: string): Promise<KeyResult>;
  /**
   * Stores the time of a use (Unix ms) in D1. Returns the key, even if revoked. Fails like
   * `identify`.
   */
  refresh(usedAt: number): Promise<KeyResult>;
  /**
   * Permanently revokes any key, even an unknown one. Returns the time of the first revocation. If
   * it throws, the revocation may have succeeded.
   */
  revoke(revokedAt: number): Promise<number>;
  /** Writes the revocation to D1, with retries. Throws if storage fails. */
  tellBook(): Promise<void>;
  /**
   * Applies a new rate limit immediately. Earlier requests count toward it. Throws if storage
   * fails.
   */
  setLimit(rpmLimit: number): Promise<void>;
  setTerms(terms: KeyTerms): Promise<void>;
  setSecrets(secrets: KeySecrets): Promise<void>;
  /** Durably stores at a peer when a secret stops working. Throws if storage fails. */
  retire(secret: string, retiresAt: number): Promise<void>;
};
