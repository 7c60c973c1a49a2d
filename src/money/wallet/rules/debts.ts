import { conflict, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";

/** Refunded and disputed amounts by state: owed, taken from the balance, or forgiven. */
export type Debts = {
  readonly owed: Micros;
  readonly taken: Micros;
  readonly forgiven: Micros;
};
export const NO_DEBTS: Debts = { owed: micros(0), taken: micros(0), forgiven: micros(0) };

export type CreditedPayment = {
  readonly id: string;
  readonly purchaseId: string;
  readonly credited: Micros;
  readonly refunded: Micros;
  readonly reading: number;
};

type RefundResult = {
  readonly debts: Debts;
  readonly payment: CreditedPayment;
  readonly returned: Micros;
};

/**
 * Sets a payment's refunded and disputed amount, capped at its credits. A lower amount, as after a
 * won dispute, first reduces the debt and then returns credits. Returns null if newer data from
 * Stripe is stored.
 */
export function applyRefund(
  debts: Debts,
  payment: CreditedPayment,
  { back: requested, reading }: { readonly back: Micros; readonly reading: number },
): RefundResult | null {
  if (reading <= payment.reading) return null;
  const back = micros(Math.max(0, Math.min(requested, payment.credited)));
  const moved: CreditedPayment = { ...payment, refunded: back, reading };
  const more = back - payment.refunded;
  if (more >= 0) {
    const owed = micros(debts.owed + more);
    return { debts: { ...debts, owed }, payment: moved, returned: micros(0) };
  }
  const fromOwed = Math.min(debts.owed, -more);
  const returned = Math.min(debts.taken, -more - fromOwed);
  return {
    debts: {
      owed: micros(debts.owed - fromOwed),
      taken: micros(debts.taken - returned),
      forgiven: micros(debts.forgiven - (-more - fromOwed - returned)),
    },
    payment: moved,
    returned: micros(returned),
  };
}

/** Pays debt from free credits. Returns null if nothing can be paid. */
export function collectDebt(
  debts: Debts,
  free: Micros,
): { readonly debts: Debts; readonly paid: Micros } | null {
  const paid = Math.min(debts.owed, free);
  if (paid <= 0) return null;
  const after = { ...debts, owed: micros(debts.owed - paid), taken: micros(debts.taken + paid) };
  return { debts: after, paid: micros(paid) };
}

export function forgiveDebt(debts: Debts, amount: Micros): Result<Debts> {
  if (amount > debts.owed) {
    return conflict("The amount can't exceed the debt.", "forgive_micro");
  }
  const owed = micros(debts.owed - amount);
  return success({ ...debts, owed, forgiven: micros(debts.forgiven + amount) });
}
