import type { VerifiedKey } from "../caller.ts";
import type { RateState } from "../key-terms.ts";
import type { Result } from "../failure.ts";

/** A person's session, acting as one member; null: in no organization. Times are Unix ms. */
export type PersonSession = {
  readonly kind: "person";
  readonly personId: string;
  readonly memberId: string | null;
  readonly orgId: string | null;
  /** Where they logged in: an id of LOGIN_ISSUERS, and the identity there. */
  readonly issuer: string;
  /** The company's own issuer that they came in by, left out for every other: it acts in `realm`, its organization, alone. */
  readonly realm?: string;
  readonly connection?: string;
  /** The Entra tenant that they came in by; left out for every other. */
  readonly tenant?: string;
  readonly openedAt: number;
  /** The last time that they proved who they are, and how it is known: by the issuer's word, or by the code's exchange. */
  readonly freshAt: number;
  readonly freshBy: "auth_time" | "exchange";
  /** What the browser calls itself, in a few words. */
  readonly browser: string;
};

/** Who looks: a key by its hash, an operator by the hash of the token, or a person; the text of a secret is never kept. */
export type ConsoleIdentity =
  | {
      readonly kind: "key";
      readonly key: VerifiedKey;
    }
  | OperatorIdentity
  | PersonSession;

/** An operator by the token, or by a log-in that is an entry of OPERATOR_LOGINS. */
export type OperatorIdentity = (
  | { readonly kind: "operator"; readonly tokenHash: string }
  | { readonly kind: "operator_login"; readonly issuer: string; readonly subject: string }
) & {
  /** The id of the organization that is read as its owner would; left out: none. */
  readonly as?: string;
};

/** A session at a call of it: whose it is, until when (Unix ms), and what is left of the minute of all sessions of it. */
export type EnteredSession = {
  readonly identity: ConsoleIdentity;
  readonly expiresAt: number;
  readonly rate: RateState;
};

/** The calls of the object `ConsoleSession`: plain values. */
export type ConsoleSessionCalls = {
  open(name: string, identity: ConsoleIdentity, expiresAt: number): Promise<Result<null>>;
  enter(name: string, isCounted: boolean): Promise<Result<EnteredSession>>;
  close(name: string | null): Promise<Result<null>>;
  /** Ends the sessions that act as a member. */
  closeOf(memberId: string): Promise<Result<null>>;
  /** Makes a live session another one's, of the same account: acting as another member, or fresh again. */
  become(name: string, identity: ConsoleIdentity): Promise<Result<null>>;
  /** What lives, the newest first. */
  list(): Promise<Result<readonly ListedSession[]>>;
};

/** A session as its person sees it; its name opens nothing. */
export type ListedSession = {
  readonly name: string;
  readonly identity: ConsoleIdentity;
  readonly expiresAt: number;
};
