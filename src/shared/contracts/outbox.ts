import type { Generation } from "../generation.ts";
import type { Micros } from "../money.ts";

/** How one hold came out, for the wallet that keeps it. `cost` in micros; a void costs 0. */
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
 * A key that is dead since `revokedAt` (Unix ms), named by its hash as its register is. With `root` only a secret
 * of that key, which may still live until then.
 */
export type RevocationItem = {
  readonly keyHash: string;
  readonly revokedAt: number;
  readonly root?: string;
};

/** How much a queue holds. `oldestMs`: age of the oldest message still waiting, null when none is. */
export type Depth = {
  readonly waiting: number;
  readonly dead: number;
  readonly parked: number;
  readonly oldestMs: number | null;
};

/** The calls on `RegionOutbox`, whose names are those of `outbox-schedule.ts`. */
export type OutboxCalls = {
  /**
   * Stores outcomes and the alarm that will deliver them, together and durable before it answers;
   * never waits for delivery. The same hold and kind again: stored once. Throws when storage does.
   */
  enqueue(items: readonly OutcomeItem[]): Promise<void>;
  /** As `enqueue`; a revocation is tried at once, also one that was enqueued or given up before. */
  enqueueRevocations(items: readonly RevocationItem[]): Promise<void>;
  /**
   * Tries to deliver now what waits for this receiver, or for any (null), whatever its backoff, and answers
   * after at most `limitMs`: true when nothing waits any more. A delivery under way then goes on; no other
   * one begins.
   */
  flush(limitMs: number, receiver?: string | null): Promise<boolean>;
  /** For the cron sweep: what is parked is tried once more, and a lost or overdue alarm is set again. */
  poke(): Promise<void>;
  /** What is still here, for operators. */
  depth(): Promise<Depth>;
};
