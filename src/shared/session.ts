import type { Budget } from "./budgets.ts";
import type { Micros } from "./money.ts";
import type { Policy } from "./policy.ts";
import type { Tags } from "./tags.ts";

/** A session's limits, which its token contains. Null means none. Times are Unix ms. */
export type Session = {
  /** `ses_` and 24 + 16 characters. The last 16 identify its key and organization. */
  readonly id: string;
  /** Creation time of its wallet. Another wallet rejects the session. */
  readonly madeAt: number;
  /**
   * The number of the last rotation that ended the key's sessions when this one was created, or 0.
   */
  readonly cut: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly endUser: string | null;
  readonly budgetMicro: Micros | null;
  readonly budgets?: readonly Budget[];
  readonly allowedModels: readonly string[] | null;
  readonly policy?: Policy;
  /** Counts the requests of all regions together. */
  readonly rpmLimit: number | null;
  readonly origins: readonly string[] | null;
  readonly mayHold?: true;
  readonly tags?: Tags;
};

export const SESSION_MAX_S = 86_400;
