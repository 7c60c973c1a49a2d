import type { Generation } from "../generation.ts";
import type { Micros } from "../money.ts";

/** A hold's outcome, queued for its wallet. A voided hold has `cost` 0. */
export type OutcomeItem =
  | {
      readonly holdId: string;
      readonly orgId: string;
      readonly kind: "settle";
      readonly cost: Micros;
      readonly generation: Generation;
      /**
       * Whether the charge can't exceed the hold, because the client was already told that cost.
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
 * otherwise, it revokes the whole key.
 */
export type RevocationItem = {
  readonly keyHash: string;
  readonly revokedAt: number;
  readonly root?: string;
};

/** Counts of waiting, rejected (`dead`) and dead-lettered (`parked`) messages. */
export type OutboxState = {
  readonly waiting: number;
  readonly dead: number;
  readonly parked: number;
  readonly oldestMs: number | null;
};

export type RegionOutboxMethods = {
  /** Durably queues outcomes, each once, without waiting for delivery. Throws if storage fails. */
  enqueue(items: readonly OutcomeItem[]): Promise<void>;
  /** Queues revocations durably, then tries to deliver them and any dead-lettered ones. */
  enqueueRevocations(items: readonly RevocationItem[]): Promise<void>;
  /**
   * Delivers queued messages for at most `limitMs`, to one receiver or (null) to all. Returns true
   * if no message remains.
   */
  flush(limitMs: number, receiver?: string | null): Promise<boolean>;
  /** Retries each dead-lettered message once, and restores a lost alarm. */
  poke(): Promise<void>;
  depth(): Promise<OutboxState>;
};
