import type { VerifiedKey } from "../caller.ts";
import type { RateState } from "../key-terms.ts";
import type { Result } from "../failure.ts";

/** A person's session. It acts as one member; null if they are in no organization. Times are Unix ms. */
export type PersonSession = {
  readonly kind: "person";
  readonly personId: string;
  readonly memberId: string | null;
  readonly orgId: string | null;
  /** The identity provider (an ID of LOGIN_ISSUERS) and the identity there. */
  readonly issuer: string;
  /**
   * The organization whose own identity provider was used; absent otherwise. The session acts only in that
   * organization.
   */
  readonly realm?: string;
  readonly connection?: string;
  /** The Entra tenant; absent otherwise. */
  readonly tenant?: string;
  readonly openedAt: number;
  readonly freshAt: number;
  readonly freshBy: "auth_time" | "exchange";
  readonly browser: string;
};

/** The account of a session: a key, an operator or a person. Secrets are stored only as hashes. */
export type ConsoleIdentity =
  | {
      readonly kind: "key";
      readonly key: VerifiedKey;
    }
  | OperatorIdentity
  | PersonSession;

/** An operator by token or by an entry of OPERATOR_LOGINS. */
export type OperatorIdentity = (
  | { readonly kind: "operator"; readonly tokenHash: string }
  | {
      readonly kind: "operator_login";
      readonly issuer: string;
      readonly subject: string;
      /** When and how the login proved the operator's presence; absent in sessions of the previous release. */
      readonly freshAt?: number;
      readonly freshBy?: "auth_time" | "exchange";
    }
) & {
  /** The organization viewed as its owner; absent for none. */
  readonly as?: string;
};

/** A session at a call: its account, its expiry (Unix ms) and the rest of the account's minute. */
export type EnteredSession = {
  readonly identity: ConsoleIdentity;
  readonly expiresAt: number;
  readonly rate: RateState;
};

/** The calls of the `ConsoleSession` object. */
export type ConsoleSessionCalls = {
  open(name: string, identity: ConsoleIdentity, expiresAt: number): Promise<Result<null>>;
  enter(name: string, isCounted: boolean): Promise<Result<EnteredSession>>;
  close(name: string | null): Promise<Result<null>>;
  closeOf(memberId: string): Promise<Result<null>>;
  /** Changes a session's identity within its account: another member, or a confirmed login. */
  become(name: string, identity: ConsoleIdentity): Promise<Result<null>>;
  list(): Promise<Result<readonly ListedSession[]>>;
};

/** A session as shown to its person. Its name grants no access. */
export type ListedSession = {
  readonly name: string;
  readonly identity: ConsoleIdentity;
  readonly expiresAt: number;
};
