import { creditsQuery, purchaseBody, purchasesQuery } from "../../src/payments/purchases.route.ts";
import { idempotencyKey } from "./headers.ts";
import type { Description } from "./operation.ts";
import * as paid from "./payment-records.ts";
import { queryOf } from "./schemas.ts";

/** What customers do with credits. */
export const PAYMENT_OPERATIONS: Readonly<Record<string, Description>> = {
  "GET /v1/credits": {
    tag: "Money",
    summary: "What came in and went back, newest first, and how buying stands",
    description:
      "`sold` is null where credits are not sold by card. `owed_micro` is what went back of payments and is not paid for: while it is above 0, paid requests are refused with `payment_reversed`, and what comes in pays it first.",
    query: queryOf(creditsQuery),
    answers: { 200: paid.credits },
  },
  "GET /v1/credits/purchases": {
    tag: "Money",
    summary: "Purchases, newest first, automatic ones too",
    query: queryOf(purchasesQuery),
    answers: { 200: paid.purchases },
    errors: ["payments_off"],
  },
  "POST /v1/credits/purchases": {
    tag: "Money",
    summary: "Buy credits, on a page of Stripe's or by the saved card",
    description:
      "Needs an `Idempotency-Key`: a repeat is the same purchase. It goes on by itself: send the customer to `url` where there is one, and ask `Location` for its state. Credits are what is paid without tax.",
    body: purchaseBody,
    answers: { 202: paid.purchase },
    hasLocation: true,
    headers: [idempotencyKey(true)],
    errors: [
      "payments_off",
      "no_saved_card",
      "purchase_in_progress",
      "purchase_limit",
      "idempotency_mismatch",
    ],
  },
  "GET /v1/credits/purchases/{id}": {
    tag: "Money",
    summary: "One purchase",
    answers: { 200: paid.purchase },
    errors: ["payments_off"],
  },
  "POST /v1/credits/purchases/{id}/cancel": {
    tag: "Money",
    summary:
      "Close a purchase that nobody has paid; what was paid meanwhile is credited all the same",
    answers: { 202: paid.purchase },
    errors: ["payments_off"],
  },
  "POST /v1/credits/portal": {
    tag: "Money",
    summary: "A link to Stripe's page for cards, addresses and invoices, good for minutes",
    answers: { 200: paid.portal },
    errors: ["payments_off", "no_purchases"],
  },
};
