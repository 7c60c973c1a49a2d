import type { Actor } from "./event.ts";
import type { RateState } from "./key-terms.ts";
import type { Key, Scope } from "./key.ts";
import type { Region } from "./regions.ts";
import type { Session } from "./session.ts";

/** Who calls: words that several folders share. */

export type Role = "owner" | "admin" | "billing" | "member";

/** What a request shows where it does not show its key's first secret. */
export type PresentedSecret =
  /** A later secret of the key, by its hash. */
  | { readonly secret: string; readonly session?: never }
  | { readonly session: Session; readonly secret?: never };

/** What a well-formed key of ours says about itself, before anything was read. */
export type VerifiedKey = {
  /** The key's, which is that of its first secret. */
  readonly hash: string;
  readonly home: Region;
  readonly scope: Scope;
  /** Left out: its first secret. */
  readonly shown?: PresentedSecret;
};

/** Who a key says it is, proven by the register. `keyHash` names the key's register; it is never shown. */
export type Caller = Pick<Key, "keyId" | "orgId" | "memberId" | "scope"> & {
  readonly keyHash: string;
  readonly home: Region;
  /** Left out: the key's first secret. */
  readonly shown?: PresentedSecret;
  /** It is an operator who looks, as this member of the organization would; nothing but reads. */
  readonly viewer?: Member;
  /** It is a person, whose member acts by a key that nobody has the text of. */
  readonly isPerson?: true;
};

/** Whom an event names as the one who called. */
export function actorOf({ isPerson, keyId, memberId }: Caller): Actor {
  return isPerson === true ? { kind: "member", id: memberId } : { kind: "key", id: keyId };
}

/** What a request calls with. */
export type RequestCredential = Pick<Caller, "keyHash" | "shown">;

export function requestCredential(
  keyHash: string,
  shown: PresentedSecret | undefined,
): RequestCredential {
  return shown === undefined ? { keyHash } : { keyHash, shown };
}

/** The hash of the secret that a request shows; undefined for a session, which lives as long as its key does. */
export function secretOf(keyHash: string, shown: PresentedSecret | undefined): string | undefined {
  return shown?.session === undefined ? (shown?.secret ?? keyHash) : undefined;
}

/** Whom a key acts as, read from the book for each management request: never cached. */
export type Member = {
  readonly id: string;
  readonly role: Role;
  /** Its organization may read, but not write. */
  readonly suspended: boolean;
};

/** An admitted request: who, and what is left of the key's minute. */
export type Admitted = {
  readonly caller: Caller;
  /** The key's rate limit after this request, for the x-ratelimit headers. */
  readonly rate: RateState;
  /** Of its token limit, once it holds; left out for a key without one. */
  readonly tokens?: RateState;
  /** A key with limits of its own: it pays and looks, and manages nothing. Left out for any other. */
  readonly isLimited?: boolean;
  /** The price list of its organization's own, as home says; left out without one. */
  readonly priceList?: string;
};
