import type { Micros } from "./money.ts";

/** What a session may do; all of it stands in its token. Null is "no such limit of its own". Times in Unix ms. */
export type Session = {
  /** `ses_` + 24 + 16: the last ones say whose key's and organization's it is. */
  readonly id: string;
  /** When the wallet was made that it was minted for: no other takes it. */
  readonly madeAt: number;
  /** The last rotation that ended all its key's sessions before it was minted; 0 for none. */
  readonly cut: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly endUser: string | null;
  /** What it may spend in all, whole micros, of its key's. */
  readonly budgetMicro: Micros | null;
  /** As a key's. */
  readonly allowedModels: readonly string[] | null;
  /** Granted requests in any 60 s, in all regions together. */
  readonly rpmLimit: number | null;
  /** The pages that may send it. */
  readonly origins: readonly string[] | null;
};

/** The longest that a session may live. */
export const SESSION_MAX_S = 86_400;
