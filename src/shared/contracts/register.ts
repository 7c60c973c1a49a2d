import type { Failure, Result } from "../failure.ts";
import type { Key, KeySecrets } from "../key.ts";
import type { KeyTerms } from "../key-terms.ts";
import type { Session } from "../session.ts";
import type { Region } from "../regions.ts";

/** What the register answers of itself: plain values. */
export type Identified = Result<Key>;

/** An admitted request: whose it is, and what is left of the key's minute. */
export type AdmittedKey = Pick<Key, "keyId" | "orgId" | "memberId" | "scope"> & {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  /** As `Admitted` has it. */
  readonly isLimited?: boolean;
  /** The price list of the organization's own, as its wallet says; left out without one, and by a register. */
  readonly priceList?: string;
};
export type Admission =
  | ({ readonly ok: true } & AdmittedKey)
  | { readonly ok: false; readonly failure: Failure };

/** Whose requests are counted, and how many fit any 60 s; null: as many as its key's. */
export type PacedSession = Pick<Session, "id" | "rpmLimit">;

/** The calls on `KeyRegister`, which is named by the key's hash. */
export type RegisterCalls = {
  /**
   * Admits one request or says why not: `invalid_api_key` (unknown or revoked), `rate_limited`,
   * `storage_unavailable`, and for a global key of another `home`, on its first use here,
   * `home_region_unreachable`. Never throws, and never admits or condemns on what it does not know. `secret`:
   * the hash of the one that was shown, left out by who looks at it himself; away from home only one that is known
   * to have retired is refused. `session`: whose own minute the request must fit first.
   */
  admit(home: Region | null, secret?: string, session?: PacedSession): Promise<Admission>;
  /**
   * Whose the key is, for a peer that counts its requests itself: takes no place in the window. Notes the
   * use. `writeId` names what must not be done twice: an id seen before is `conflict`. Failures:
   * `invalid_api_key`, `storage_unavailable`, `overloaded`. Never throws. `secret` as for `admit`.
   */
  identify(writeId: string | null, secret?: string): Promise<Identified>;
  /** Whose the key is, and no more: nothing is noted. Failures as for `identify`. */
  whose(secret?: string): Promise<Identified>;
  /**
   * Notes a use of then (Unix ms) in the book now, and says what is true of the key by then. The last use of
   * a key that has died is noted as well. Failures as for `identify`.
   */
  refresh(usedAt: number): Promise<Identified>;
  /**
   * Ends the key here for good, durable before it answers; works for a key that was never read. Again:
   * the first time stands. Answers with it (Unix ms). Throws when storage does: then nothing is certain.
   */
  revoke(revokedAt: number): Promise<number>;
  /**
   * The book could not be told that this key ended (`revoke`): from here on it is tried until it was. For a
   * key of this region. Throws when storage does.
   */
  tellBook(): Promise<void>;
  /**
   * An operator changed the key's limit in the book: it counts from this turn on, for what was admitted
   * before as well. A key that was never read here learns it from the book. Throws when storage does.
   */
  setLimit(rpmLimit: number): Promise<void>;
  /** The key's terms were changed in the book: as `setLimit`. */
  setTerms(terms: KeyTerms): Promise<void>;
  /** The key's secrets were changed in the book: as `setLimit`. */
  setSecrets(secrets: KeySecrets): Promise<void>;
  /** Away from its home: a secret of the key ends then. Durable before it answers; throws when storage does. */
  retire(secret: string, retiresAt: number): Promise<void>;
};
