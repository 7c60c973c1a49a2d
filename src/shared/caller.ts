import type { Actor } from "./event.ts";
import type { RateState } from "./key-terms.ts";
import type { Key, Scope } from "./key.ts";
import type { PolicyLayer } from "./policy.ts";
import type { Region } from "./regions.ts";
import type { Session } from "./session.ts";

/** The roles of members. */

export type Role = "owner" | "admin" | "billing" | "member";

/** The secret that a request presents, if it isn't the key's first secret. */
export type PresentedSecret =
  /** The hash of a later secret of the key. */
  | { readonly secret: string; readonly session?: never }
  | { readonly session: Session; readonly secret?: never };

/** The fields of a well-formed key, read from its text only. */
export type VerifiedKey = {
  readonly hash: string;
  readonly home: Region;
  readonly scope: Scope;
  readonly shown?: PresentedSecret;
};

/**
 * The key behind a request, as its key object confirmed it. `keyHash` names that object and is never shown.
 */
export type Caller = Pick<Key, "keyId" | "orgId" | "memberId" | "scope"> & {
  readonly keyHash: string;
  readonly home: Region;
  readonly shown?: PresentedSecret;
  /** An operator who views the organization as this member, read-only. */
  readonly viewer?: Member;
  /** A person. Their member acts through a key whose text nobody has. */
  readonly isPerson?: true;
};

/** Returns the actor of an event. */
export function actorOf({ isPerson, keyId, memberId }: Caller): Actor {
  return isPerson === true ? { kind: "member", id: memberId } : { kind: "key", id: keyId };
}

/** The key and secret of a request. */
export type RequestCredential = Pick<Caller, "keyHash" | "shown">;

export function requestCredential(
  keyHash: string,
  shown: PresentedSecret | undefined,
): RequestCredential {
  return shown === undefined ? { keyHash } : { keyHash, shown };
}

/** Returns the hash of the presented secret, or undefined for a session, which ends with its key. */
export function secretOf(keyHash: string, shown: PresentedSecret | undefined): string | undefined {
  return shown?.session === undefined ? (shown?.secret ?? keyHash) : undefined;
}

/** The member that a key acts for, read from the database for each management request. */
export type Member = {
  readonly id: string;
  readonly role: Role;
  readonly suspended: boolean;
};

/** An admitted request: its caller and the rest of the key's minute. */
export type Admitted = {
  readonly caller: Caller;
  /** The key's rate limit after this request, for the x-ratelimit headers. */
  readonly rate: RateState;
  /** The key's token limit after the hold; absent without one. */
  readonly tokens?: RateState;
  /** The key has limits and can't call management endpoints. Absent otherwise. */
  readonly isLimited?: boolean;
  /** The organization's price list; absent without one. */
  readonly priceList?: string;
  /** The policies that apply; absent without any. */
  readonly policies?: readonly PolicyLayer[];
};
