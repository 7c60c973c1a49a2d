import type { Failure, Result } from "../failure.ts";
import type { Key, KeySecrets } from "../key.ts";
import type { KeyTerms } from "../key-terms.ts";
import type { PolicyLayer } from "../policy.ts";
import type { Session } from "../session.ts";
import type { Region } from "../regions.ts";

/** The response of a key object. */
export type Identified = Result<Key>;

/** An admitted request: its key and the rest of the key's minute. */
export type AdmittedKey = Pick<Key, "keyId" | "orgId" | "memberId" | "scope"> & {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly isLimited?: boolean;
  /** The organization's price list, from the wallet; absent without one and from key objects. */
  readonly priceList?: string;
  /** The policies that apply to the request, from the wallet; absent without any. */
  readonly policies?: readonly PolicyLayer[];
};
export type Admission =
  | ({ readonly ok: true } & AdmittedKey)
  | { readonly ok: false; readonly failure: Failure };

/** A session and its requests per minute; null uses the key's limit. */
export type PacedSession = Pick<Session, "id" | "rpmLimit">;

/** The calls of `KeyRegister`, named by the key's hash. */
export type RegisterCalls = {
  /**
   * Admits one request, or returns `invalid_api_key`, `rate_limited`, `storage_unavailable` or, for a global
   * key used away from home for the first time, `home_region_unreachable`. Never throws and never decides
   * without facts. `secret` is the hash of the presented secret; away from home only known retired ones are
   * rejected. A `session`'s own minute is checked first.
   */
  admit(home: Region | null, secret?: string, session?: PacedSession): Promise<Admission>;
  /**
   * Returns the key for another region that counts requests itself, and records the use. `writeId` prevents
   * repeats: a known ID returns `conflict`. Failures: `invalid_api_key`, `storage_unavailable`, `overloaded`.
   * Never throws.
   */
  identify(writeId: string | null, secret?: string): Promise<Identified>;
  /** Returns the key without recording a use. Fails like `identify`. */
  whose(secret?: string): Promise<Identified>;
  /**
   * Records a use at `usedAt` (Unix ms) in the database and returns the key's current state. Also records the
   * last use of a revoked key. Fails like `identify`.
   */
  refresh(usedAt: number): Promise<Identified>;
  /**
   * Revokes the key permanently and durably, even if it was never read. Returns the first revocation time
   * (Unix ms). Throws when storage does; the state is then unknown.
   */
  revoke(revokedAt: number): Promise<number>;
  /** Retries until the database has the revocation. For keys of this region. Throws when storage does. */
  tellBook(): Promise<void>;
  /** Applies a changed rate limit immediately, including earlier admissions. Throws when storage does. */
  setLimit(rpmLimit: number): Promise<void>;
  setTerms(terms: KeyTerms): Promise<void>;
  setSecrets(secrets: KeySecrets): Promise<void>;
  /** Ends a secret at a time, away from its home region. Durable; throws when storage does. */
  retire(secret: string, retiresAt: number): Promise<void>;
};
