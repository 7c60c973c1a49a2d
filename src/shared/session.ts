import type { Budget } from "./budgets.ts";
import type { Micros } from "./money.ts";
import type { Policy } from "./policy.ts";

/** A session's limits, all contained in its token. Null means no own limit. Times are Unix ms. */
export type Session = {
  /** `ses_` + 24 + 16 characters. The last ones identify its key and organization. */
  readonly id: string;
  /** Creation time of its wallet. Other wallets reject it. */
  readonly madeAt: number;
  /** The last rotation that ended the key's sessions before it was minted; 0 for none. */
  readonly cut: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly endUser: string | null;
  /** Total micro-credits it may spend of its key's. */
  readonly budgetMicro: Micros | null;
  /** Further budgets; absent without any. */
  readonly budgets?: readonly Budget[];
  readonly allowedModels: readonly string[] | null;
  /** Its own policy besides its key's. Absent in tokens without one. */
  readonly policy?: Policy;
  /** Requests in any 60 s, in all regions together. */
  readonly rpmLimit: number | null;
  readonly origins: readonly string[] | null;
  /** It may place holds and charges; absent if not. */
  readonly mayHold?: true;
};

/** Maximum lifetime of a session. */
export const SESSION_MAX_S = 86_400;
