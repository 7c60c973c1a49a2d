import type { Micros } from "../money.ts";
import type { HoldPurpose } from "../placed-hold.ts";
import type { RequestState } from "./wallet-pages.ts";

/** A hold that a client placed through the API, with its outcome. */
export type PlacedHold = HoldPurpose & {
  readonly id: string;
  readonly state: RequestState;
  readonly keyId: string;
  readonly sessionId: string | null;
  readonly externalId: string | null;
  readonly grantedMicro: Micros;
  readonly capturedMicro: Micros | null;
  readonly createdAt: number;
  readonly expiresAt: number;
};

/** The merchant or key that reads or changes a hold. */
export type HoldCaller =
  | { readonly kind: "merchant"; readonly name: string }
  | { readonly kind: "key"; readonly keyId: string; readonly sessionId: string | null };

/** A change to a hold. A capture without `amountMicro` captures the full hold. */
export type HoldAction =
  | { readonly kind: "capture"; readonly amountMicro: Micros | null }
  | { readonly kind: "release" }
  | { readonly kind: "extend"; readonly expiresInS: number };

export type HoldChange = {
  readonly id: string;
  readonly by: HoldCaller;
  readonly action: HoldAction;
};
