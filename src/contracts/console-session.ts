import type { VerifiedKey } from "../lib/caller.ts";
import type { RateState } from "../lib/key-terms.ts";
import type { Result } from "../lib/failure.ts";

/** Who looks: a key by its hash, or an operator by the hash of the token; the text of neither is kept. */
export type ConsoleIdentity =
  | {
      readonly kind: "key";
      readonly key: VerifiedKey;
    }
  | { readonly kind: "operator"; readonly tokenHash: string };

/** A session at a call of it: whose it is, until when (Unix ms), and what is left of the minute of all sessions of it. */
export type Entered = {
  readonly identity: ConsoleIdentity;
  readonly expiresAt: number;
  readonly rate: RateState;
};

/** The calls of the object `ConsoleSession`: plain values. */
export type ConsoleSessionCalls = {
  open(name: string, identity: ConsoleIdentity, expiresAt: number): Promise<Result<null>>;
  enter(name: string, isCounted: boolean): Promise<Result<Entered>>;
  close(name: string | null): Promise<Result<null>>;
};
