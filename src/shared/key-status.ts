import type { BudgetStatus } from "./budgets.ts";
import type { BudgetPeriod, KeyTerms } from "./key-terms.ts";
import type { Micros } from "./money.ts";
import type { Paused } from "./paused.ts";
import type { PolicyLayer } from "./policy.ts";

export type RateLimitState = {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
};

export type ConcurrencyState = {
  readonly scope: "key" | "organization";
  readonly limit: number;
  readonly running: number;
};

export type KeyStatus = {
  readonly terms: KeyTerms;
  readonly requests: RateLimitState;
  readonly tokens: RateLimitState | null;
  /** `resetsAt` is Unix ms, or null for a total budget. */
  readonly budget: {
    readonly spentMicro: Micros;
    readonly heldMicro: Micros;
    readonly leftMicro: Micros;
    readonly resetsAt: number | null;
  } | null;
  /** Only a session's own budgets, if the caller is a session. */
  readonly budgets: readonly BudgetStatus[];
  /** Running requests under each concurrency limit. Absent for a session. */
  readonly concurrency?: readonly ConcurrencyState[];
  /** Creation time (Unix ms) of the wallet. A session is valid only in its own wallet. */
  readonly madeAt: number;
  /** The number of the last key rotation that ended sessions, or 0. */
  readonly sessionsCut: number;
  readonly priceList?: string;
  readonly spend?: Readonly<Record<BudgetPeriod | "total", Micros>>;
  readonly policies?: readonly PolicyLayer[];
  readonly paused?: Paused;
  readonly session?: { readonly spentMicro: Micros; readonly heldMicro: Micros };
};
