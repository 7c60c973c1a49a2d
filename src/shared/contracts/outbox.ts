import type { Generation } from "../generation.ts";
import type { Micros } from "../money.ts";

/** The outcome of a hold, for its wallet. `cost` is 0 if the hold was voided. */
export type OutcomeItem =
  | {
      readonly holdId: string;
      readonly orgId: string;
      readonly kind: "settle";
      readonly cost: Micros;
      readonly generation: Generation;
      /** Whether to charge at most the hold, because the client has received this cost. */
      readonly isCapped?: boolean;
    }
  | {
      readonly holdId: string;
      readonly orgId: string;
      readonly kind: "void";
      readonly cost: Micros;
      /** The call whose bill we absorb, if any. */
      readonly generation: Generation | null;
    };

/** The hash of a revoked key. With `root`, the hash of an ended secret of the key `root`. */
export type RevocationItem = {
  readonly keyHash: string;
  readonly revokedAt: number;
  readonly root?: string;
};

export type Depth = {
  readonly waiting: number;
  readonly dead: number;
  readonly parked: number;
  readonly oldestMs: number | null;
};

export type OutboxCalls = {
  /**
   * Stores outcomes and an alarm durably, without waiting for delivery. Stores a repeated outcome
   * once. Throws if storage fails.
   */
  enqueue(items: readonly OutcomeItem[]): Promise<void>;
  /**
   * Stores revocations like `enqueue`, and tries to deliver them immediately, including
   * dead-lettered ones.
   */
  enqueueRevocations(items: readonly RevocationItem[]): Promise<void>;
  /**
   * Delivers a receiver's messages now, whatever their next retry, for at most `limitMs`. Null
   * means all receivers. Returns true if none is left.
   */
  flush(limitMs: number, receiver?: string | null): Promise<boolean>;
  /** Retries each dead-lettered message once and restores a lost alarm. The sweep calls it. */
  poke(): Promise<void>;
  depth(): Promise<Depth>;
};
