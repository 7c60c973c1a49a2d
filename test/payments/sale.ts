import { micros } from "../../src/shared/money.ts";
import type { PurchaseForStripe } from "../../src/money/payments/stripe-calls.ts";

/** A purchase with every field of a form. */
export const SALE: PurchaseForStripe = {
  id: "pur_0VbjqiKsyuweZAnWqUxMwYA6",
  orgId: "c0473d77-9090-4904-9ce4-c07250587751",
  region: "eu",
  method: "checkout",
  amountMicro: micros(10_000_000),
  saveCard: true,
  createdAt: 1_795_600_000_000,
  returnUrl: "https://eu.test/console/#/credits?purchase=",
  customerId: "cus_1",
  hasTax: true,
  taxCode: "txcd_10000000",
};
