import type { Micros } from "./money.ts";

/** Prefixes of the references of credits that only the wallet creates. */
export const RESERVED_REFERENCE_PREFIXES = ["stripe:", "owed:", "rebuild:"] as const;

type ReferencedCredit = { readonly reference: string; readonly amountMicro: Micros };
type CreditKind = "payment" | "credit" | "correction" | "reversal" | "return" | "rebuild";

/**
 * Returns a credit's kind. `reversal`: a collected debt of a refund or dispute. `return`: credits
 * returned after it.
 */
export function creditKindOf({ reference, amountMicro }: ReferencedCredit): CreditKind {
  if (reference.startsWith("rebuild:")) return "rebuild";
  if (reference.startsWith("owed:")) return "reversal";
  if (reference.startsWith("stripe:")) return reference.includes(":back:") ? "return" : "payment";
  return amountMicro < 0 ? "correction" : "credit";
}

export function paymentIdOfCredit(credit: ReferencedCredit): string | null {
  return creditKindOf(credit) === "payment" ? (credit.reference.split(":")[1] ?? null) : null;
}
