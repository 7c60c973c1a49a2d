import type { Calls } from "../api/types.ts";
import { formatBalance, dollarsToMicros } from "./money.ts";
import { dayName } from "./time.ts";

export type Purchase = Calls["GET /v1/credits/purchases/{id}"]["answer"];
export type CreditTransactionsPage = Calls["GET /v1/credits"]["answer"];

type Tone = "plain" | "good" | "warn" | "bad";

const STATES: Readonly<Record<Purchase["state"], readonly [word: string, tone: Tone]>> = {
  wanted: ["starting", "plain"],
  asked: ["processing", "plain"],
  unknown: ["processing", "plain"],
  needs_customer: ["action required", "warn"],
  paid: ["paid, being added", "plain"],
  credited: ["paid", "good"],
  declined: ["declined", "bad"],
  expired: ["not paid", "plain"],
};

export function describePurchaseState(purchase: Purchase): readonly [word: string, tone: Tone] {
  const { state, amount_dollars: dollars, returned_micro: returned } = purchase;
  if (returned === 0) return STATES[state];
  return [returned < dollarsToMicros(dollars) ? "partly refunded" : "refunded", "warn"];
}

type CreditRow = CreditTransactionsPage["credits"][number];
/** The groups of transaction kinds that `creditSumText` sums separately. */
const SOURCES: readonly (readonly [name: string, kinds: readonly CreditRow["kind"][]])[] = [
  ["from payments", ["payment"]],
  ["refunded or disputed", ["reversal", "return"]],
  ["from the operator", ["credit", "correction", "rebuild"]],
];

/**
 * Returns the dates and sums of transactions (newest first): `1 Nov to 3 Nov (UTC): $5.00 from
 * payments, $1.00 from the operator, $6.00 in all.`
 */
export function creditSumText(credits: readonly CreditRow[]): string {
  const days = [credits.at(-1), credits[0]].map((row) =>
    dayName(row?.created_at.slice(0, 10) ?? ""),
  );
  const sumText = (rows: readonly CreditRow[], name: string): string =>
    `${formatBalance(rows.reduce((sum, { amount_micro }) => sum + amount_micro, 0))} ${name}`;
  const sums = SOURCES.flatMap(([name, kinds]) => {
    const rows = credits.filter(({ kind }) => kinds.includes(kind));
    return rows.length === 0 ? [] : [sumText(rows, name)];
  });
  const all = sums.length > 1 ? [sumText(credits, "in all")] : [];
  return sums.length === 0
    ? ""
    : `${[...new Set(days)].join(" to ")} (UTC): ${[...sums, ...all].join(", ")}.`;
}

const FINAL: ReadonlySet<Purchase["state"]> = new Set(["credited", "declined", "expired"]);

export function isFinalPurchase({ state }: Purchase): boolean {
  return FINAL.has(state);
}

export function paymentMethodText({ method }: Purchase): string {
  return { checkout: "payment page", card: "kept card", auto: "automatic" }[method];
}

const REMEDIES: Readonly<Record<string, string>> = {
  card_declined: "Use another card, or contact your bank.",
  insufficient_funds: "Insufficient funds. Use another card.",
  expired_card: "The card has expired. Use another card.",
  authentication_failed:
    "Your bank couldn't confirm your identity. Try again, and confirm the payment with your bank.",
  no_saved_card: "No card is saved. Pay on the payment page and save the card there.",
  card_removed: "The card was removed. Pay on the payment page and save another one.",
  address_incomplete: "Complete your address under Cards and invoices. It determines the tax.",
  customer_gone: "Pay again. This creates a new account with the payment provider.",
  misconfigured: "The operator of this region has been informed. Try again later.",
  processing_error: "The bank can't be reached. Nothing was charged. Try again.",
  cancelled: "Nothing was charged.",
  abandoned: "The payment page expired. Nothing was charged.",
  limit:
    "You have reached a limit that prevents misuse. Try again tomorrow, or ask the operator of this region.",
};

export function findPurchaseRemedy(purchase: Purchase): string {
  const found = REMEDIES[purchase.error?.code ?? "abandoned"];
  return found ?? "Try again, or use another card.";
}

const DISABLED_REASONS: Readonly<Record<string, string>> = {
  card_declined: "the bank no longer accepts the card. Save another card, then turn it on",
  no_saved_card: "no card is saved. Pay once and save the card, then turn it on",
  card_removed: "the card was removed. Pay once and save another card, then turn it on",
  address_incomplete:
    "the address is not complete. Complete it under Cards and invoices, then turn it on",
  fraud_warning:
    "the bank warned about a payment. Ask the operator of this region, then turn it on",
  disputed: "a payment is disputed. Turn it on after the dispute ends",
  wallet_rebuilt: "the balance was restored from a copy. Check it, then turn it on",
};

export function disabledReasonText(reason: string): string {
  return DISABLED_REASONS[reason] ?? "of a failure";
}

const CREDIT_KINDS: Readonly<Record<CreditRow["kind"], string>> = {
  payment: "Payment",
  credit: "Added by the operator",
  correction: "Correction",
  reversal: "Removed: a payment was refunded or disputed",
  return: "Returned: a refund or dispute was reversed",
  rebuild: "Balance restored from a copy",
};

export function creditKindText({ kind }: CreditRow): string {
  return CREDIT_KINDS[kind];
}

export function describeCard({
  brand,
  last4,
}: {
  readonly brand: string;
  readonly last4: string;
}): string {
  return `${brand.slice(0, 1).toUpperCase()}${brand.slice(1)} ···· ${last4}`;
}
