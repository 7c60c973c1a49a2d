import type { VerifiedKey } from "../caller.ts";
import type { RateState } from "../key-terms.ts";
import type { Result } from "../failure.ts";

/**
 * A person's console session. Times are Unix ms. `memberId` is null if the person has no
 * organization.
 */
export type PersonSession = {
  readonly kind: "person";
  readonly personId: string;
  readonly memberId: string | null;
  readonly orgId: string | null;
  readonly issuer: string;
  /**
   * The organization whose own identity provider authenticated the person. The session can only
   * access it.
   */
  readonly realm?: string;
  readonly connection?: string;
  readonly tenant?: string;
  readonly openedAt: number;
  readonly freshAt: number;
  readonly freshBy: "auth_time" | "exchange";
  readonly browser: string;
};

/** The person, key or operator that is logged in. Secrets are stored only as hashes. */
export type ConsoleIdentity =
  | {
      readonly kind: "key";
      readonly key: VerifiedKey;
    }
  | OperatorIdentity
  | PersonSession;

export type OperatorIdentity = (
  | { readonly kind: "operator"; readonly tokenHash: string }
  | {
      readonly kind: "operator_login";
      readonly issuer: string;
      readonly subject: string;
      /** Absent in sessions that the previous release created. */
      readonly freshAt?: number;
      readonly freshBy?: "auth_time" | "exchange";
    }
) & {
  readonly as?: string;
};

export type EnteredSession = {
  readonly identity: ConsoleIdentity;
  readonly expiresAt: number;
  readonly rate: RateState;
};

export type ConsoleSessionCalls = {
  open(name: string, identity: ConsoleIdentity, expiresAt: number): Promise<Result<null>>;
  enter(name: string, isCounted: boolean): Promise<Result<EnteredSession>>;
  close(name: string | null): Promise<Result<null>>;
  closeOf(memberId: string): Promise<Result<null>>;
  become(name: string, identity: ConsoleIdentity): Promise<Result<null>>;
  list(): Promise<Result<readonly ListedSession[]>>;
};

/** A session in the list of a person's sessions. `name` isn't a credential. */
export type ListedSession = {
  readonly name: string;
  readonly identity: ConsoleIdentity;
  readonly expiresAt: number;
};
