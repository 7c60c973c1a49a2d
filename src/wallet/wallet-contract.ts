import type { Generation } from "../lib/generation.ts";
import type { Micros } from "../lib/money.ts";
import type { Result } from "../lib/failure.ts";

/**
 * What the wallet's Durable Object answers: plain values, shared by every caller. The object is
 * named by the organisation's id.
 */
export type HoldRequest = {
  /** `req_` + 24; carries its minting time. Same id and content: same answer. */
  readonly id: string;
  readonly least: Micros;
  readonly most: Micros;
  /** The request's `user`, or null. */
  readonly externalId: string | null;
  readonly keyId: string;
  /** A peer's request: it lives longer, and a refusal is remembered so that a late duplicate stays refused. */
  readonly peer: boolean;
};
export type HoldGrant = { readonly granted: Micros };

export type Settlement = {
  readonly id: string;
  /** The real cost; the wallet charges at most what is held plus what is free. */
  readonly cost: Micros;
  readonly generation: Generation;
};
/** `unknown`: no such hold, nothing was charged. `voided`: released before; nothing was charged. */
export type SettleAnswer =
  | { readonly kind: "settled"; readonly charged: Micros; readonly shortfall: Micros }
  | { readonly kind: "unknown" }
  | { readonly kind: "voided" };

/** `settled`: the charge stands, too late to void. */
export type VoidAnswer =
  | { readonly kind: "voided" }
  | { readonly kind: "settled"; readonly charged: Micros };

export type BalanceAnswer = {
  readonly creditsMicro: Micros;
  readonly heldMicro: Micros;
  readonly openHolds: number;
};

export type CreditRequest = { readonly amountMicro: Micros; readonly reference: string };

/** The calls that other folders make on a wallet. */
export type WalletCalls = {
  /** Makes the wallet for a new organisation; again: the same epoch. */
  create(orgId: string): Promise<{ readonly epoch: string }>;
  hold(request: HoldRequest): Promise<Result<HoldGrant>>;
  settle(settlement: Settlement): Promise<Result<SettleAnswer>>;
  void(id: string): Promise<Result<VoidAnswer>>;
  credit(request: CreditRequest): Promise<Result<BalanceAnswer>>;
  balance(): Promise<Result<BalanceAnswer>>;
};
