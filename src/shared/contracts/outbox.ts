import type { Generation } from "../generation.ts";
import type { Micros } from "../money.ts";

/** The outcome of a hold, for its wallet. `cost` is in micro-credits; a void costs 0. */
export type OutcomeItem =
  | {
      readonly holdId: string;
      readonly orgId: string;
      readonly kind: "settle";
      readonly cost: Micros;
      readonly generation: Generation;
    }
  | {
      readonly holdId: string;
      readonly orgId: string;
      readonly kind: "void";
      readonly cost: Micros;
      readonly generation: null;
    };

/**
 * A key revoked at `revokedAt` (Unix ms), by its hash. With `root`, only a secret of that key ends, at that
 * time.
 */
export type RevocationItem = {
  readonly keyHash: string;
  readonly revokedAt: number;
  readonly root?: string;
};

/** The size of a queue. `oldestMs` is the age of the oldest waiting message, or null. */
export type Depth = {
  readonly waiting: number;
  readonly dead: number;
  readonly parked: number;
  readonly oldestMs: number | null;
};

/** The calls of `RegionOutbox`, named by `outbox-schedule.ts`. */
export type OutboxCalls = {
  /**
   * Stores outcomes and their alarm durably, without waiting for delivery. Repeats are stored once. Throws
   * when storage does.
   */
  enqueue(items: readonly OutcomeItem[]): Promise<void>;
  /** Stores revocations like `enqueue` and tries them immediately, including dead-lettered ones. */
  enqueueRevocations(items: readonly RevocationItem[]): Promise<void>;
  /**
   * Delivers messages for a receiver (null: any) now, ignoring backoff, for at most `limitMs`. Returns true
   * if nothing is waiting. A running delivery continues.
   */
  flush(limitMs: number, receiver?: string | null): Promise<boolean>;
  /** Retries dead-lettered messages once and restores a lost alarm. Called by the sweep. */
  poke(): Promise<void>;
  depth(): Promise<Depth>;
};
