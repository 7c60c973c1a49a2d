import type { Budget } from "./budgets.ts";
import type { Micros } from "./money.ts";
import type { Policy } from "./policy.ts";
import type { Tags } from "./tags.ts";

/** A session and its limits, as its token contains them. Null means no limit. Times are Unix ms. */
export type Session = {
  /** `ses_`, 24 characters, and 16 characters that identify key and organization. */
  readonly id: string;
  /** Creation time of the session's wallet. Other wallets reject the session. */
  readonly madeAt: number;
  /** The number of the last session-ending key rotation before this session's creation, or 0. */
  readonly cut: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly endUser: string | null;
  readonly budgetMicro: Micros | null;
  readonly budgets?: readonly Budget[];
  readonly allowedModels: readonly string[] | null;
  readonly policy?: Policy;
  /** Maximum requests per minute, counted across all regions. */
  readonly rpmLimit: number | null;
  readonly origins: readonly string[] | null;
  readonly mayHold?: true;
  readonly tags?: Tags;
};

export const SESSION_MAX_S = 86_400;
