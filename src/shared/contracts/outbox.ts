import type { Generation } from "../generation.ts";
import type { Micros } from "../money.ts";

/** A hold's outcome, queued for its wallet. `cost` is 0 if the hold was voided. */
export type OutcomeItem =
  | {
      readonly holdId: string;
      readonly orgId: string;
      readonly kind: "settle";
      readonly cost: Micros;
      readonly generation: Generation;
      /**
       * Whether the charge is limited to the hold, because the client was already told this cost.
       */
      readonly isCapped?: boolean;
    }
  | {
      readonly holdId: string;
      readonly orgId: string;
      readonly kind: "void";
      readonly cost: Micros;
      /** The provider call that the operator pays for, if any. */
      readonly generation: Generation | null;
    };

/**
 * A revocation, queued for another region. With `root`, it revokes one secret of the key `root`;
 * otherwise the whole key.
 */
export type RevocationItem = {
  readonly keyHash: string;
  readonly revokedAt: number;
  readonly root?: string;
};

export type OutboxState = {
  readonly waiting: number;
  readonly dead: number;
  readonly parked: number;
  readonly oldestMs: number | null;
};

export type OutboxCalls = {
  /**
   * Durably queues outcomes, without waiting for delivery. A repeated outcome is stored once.
   * Throws if storage fails.
   */
  enqueue(items: readonly OutcomeItem[]): Promise<void>;
  /**
   * Durably queues revocations, and immediately tries to deliver them together with dead-lettered
   * ones.
   */
  enqueueRevocations(items: readonly RevocationItem[]): Promise<void>;
  /**
   * Delivers a receiver's queued messages immediately, for at most `limitMs`. A null receiver means
   * all of them. Returns true if the queue is empty afterwards.
   */
  flush(limitMs: number, receiver?: string | null): Promise<boolean>;
  /**
   * Retries each dead-lettered message once and restores a lost alarm. The hourly sweep calls it.
   */
  poke(): Promise<void>;
  depth(): Promise<OutboxState>;
};
