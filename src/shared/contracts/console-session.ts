import type { VerifiedKey } from "../caller.ts";
import type { RateLimitState } from "../key-status.ts";
import type { Result } from "../failure.ts";

/**
 * A person's console session. Times are Unix ms. A person without an organization has no
 * `memberId`.
 */
export type PersonSession = {
  readonly kind: "person";
  readonly personId: string;
  readonly memberId: string | null;
  readonly orgId: string | null;
  readonly issuer: string;
  /**
   * The organization whose own identity provider authenticated the person, if any. The session can
   * access only this organization.
   */
  readonly realm?: string;
  readonly connection?: string;
  readonly tenant?: string;
  readonly openedAt: number;
  readonly freshAt: number;
  readonly freshBy: "auth_time" | "exchange";
  readonly browser: string;
};

/** The person, key or operator that is logged in. */
export type ConsoleIdentity =
  | {
      readonly kind: "key";
      readonly key: VerifiedKey;
    }
  | OperatorIdentity
  | PersonSession;

/** An operator, identified by token or login. */
export type OperatorIdentity = (
  | { readonly kind: "operator"; readonly tokenHash: string }
  | {
      readonly kind: "operator_login";
      readonly issuer: string;
      readonly subject: string;
      /** Time of the last login (Unix ms). Absent in sessions of the previous release. */
      readonly freshAt?: number;
      readonly freshBy?: "auth_time" | "exchange";
    }
) & {
  readonly as?: string;
};

export type AdmittedConsoleSession = {
  readonly identity: ConsoleIdentity;
  readonly expiresAt: number;
  readonly rate: RateLimitState;
};

export type ConsoleSessionMethods = {
  open(name: string, identity: ConsoleIdentity, expiresAt: number): Promise<Result<null>>;
  enter(name: string, isCounted: boolean): Promise<Result<AdmittedConsoleSession>>;
  close(name: string | null): Promise<Result<null>>;
  closeOf(memberId: string): Promise<Result<null>>;
  become(name: string, identity: ConsoleIdentity): Promise<Result<null>>;
  list(): Promise<Result<readonly ListedSession[]>>;
};

/** A session in a person's list. `name` isn't a credential. */
export type ListedSession = {
  readonly name: string;
  readonly identity: ConsoleIdentity;
  readonly expiresAt: number;
};
