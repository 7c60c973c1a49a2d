import type { Actor } from "./event.ts";
import type { Paused } from "./paused.ts";
import type { RateLimitState } from "./key-status.ts";
import type { Key, KeyScope } from "./key.ts";
import type { PolicyLayer } from "./policy.ts";
import type { Region } from "./regions.ts";
import type { Session } from "./session.ts";

export type Role = "owner" | "admin" | "billing" | "member";
export const MEMBER_ROLES: readonly Role[] = ["owner", "admin", "billing", "member"];

/** The session or rotated secret that a request presented. Absent for the key's first secret. */
export type PresentedSecret =
  | { readonly secret: string; readonly session?: never }
  | { readonly session: Session; readonly secret?: never };

/** A key with a valid signature. It may be revoked. */
export type VerifiedKey = {
  readonly hash: string;
  readonly home: Region;
  readonly scope: KeyScope;
  readonly shown?: PresentedSecret;
};

/** The caller of an admitted request. Responses never include `keyHash`. */
export type Caller = Pick<Key, "keyId" | "orgId" | "memberId" | "scope"> & {
  readonly keyHash: string;
  readonly home: Region;
  readonly shown?: PresentedSecret;
  /** The member whose view an operator has opened. Only reads are allowed. */
  readonly viewer?: Member;
  readonly isPerson?: true;
};

/** Returns the actor for events: the member in the console, otherwise the key. */
export function actorOfCaller({ isPerson, keyId, memberId }: Caller): Actor {
  return isPerson === true ? { kind: "member", id: memberId } : { kind: "key", id: keyId };
}

export type RequestCredential = Pick<Caller, "keyHash" | "shown">;

export function createRequestCredential(
  keyHash: string,
  shown: PresentedSecret | undefined,
): RequestCredential {
  return shown === undefined ? { keyHash } : { keyHash, shown };
}

/**
 * Returns the hash of the presented secret, or undefined for a session. */
export function presentedSecretHash(
  keyHash: string,
  shown: PresentedSecret | undefined,
): string | undefined {
  return shown?.session === undefined ? (shown?.secret ?? keyHash) : undefined;
}

export type Member = {
  readonly id: string;
  readonly role: Role;
  readonly suspended: boolean;
};

/** An admitted request's caller, rate limits and policies. */
export type AdmittedRequest = {
  readonly caller: Caller;
  readonly rate: RateLimitState;
  readonly tokens?: RateLimitState;
  readonly isLimited?: boolean;
  /** The organization's price list, which only the wallet sets. */
  readonly priceList?: string;
  readonly policies?: readonly PolicyLayer[];
  readonly paused?: Paused;
};
