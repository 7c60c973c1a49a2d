import type { Calls } from "../api/types.ts";

export type Purchase = Calls["GET /v1/credits/purchases/{id}"]["answer"];
export type Credits = Calls["GET /v1/credits"]["answer"];

type Tone = "plain" | "good" | "warn" | "bad";

const STATES: Readonly<Record<Purchase["state"], readonly [word: string, tone: Tone]>> = {
  wanted: ["starting", "plain"],
  asked: ["processing", "plain"],
  unknown: ["processing", "plain"],
  needs_customer: ["action required", "warn"],
  paid: ["paid, being added", "plain"],
  credited: ["added", "good"],
  declined: ["declined", "bad"],
  expired: ["not paid", "plain"],
};

export function stateOf({ state }: Purchase): readonly [word: string, tone: Tone] {
  return STATES[state];
}

const FINAL: ReadonlySet<Purchase["state"]> = new Set(["credited", "declined", "expired"]);

export function isFinal({ state }: Purchase): boolean {
  return FINAL.has(state);
}

/** Returns how a purchase was ordered. */
export function wayOf({ method }: Purchase): string {
  return { checkout: "payment page", card: "kept card", auto: "automatic" }[method];
}

const REMEDIES: Readonly<Record<string, string>> = {
  card_declined: "Use another card, or ask your bank why.",
  insufficient_funds: "Put money on the card or use another one.",
  expired_card: "The card's date is over: use another one.",
  authentication_failed:
    "Your bank did not see that it is you: try again, and confirm where it asks.",
  no_saved_card: "No card is kept: pay on the payment page and keep the card there.",
  card_removed: "The card was removed: pay on the payment page and keep another one.",
  address_incomplete: "Complete your address under Card and receipts; tax is counted by it.",
  customer_gone: "Pay again: a new account is made with the payment provider.",
  misconfigured: "It is not your fault: who runs this region has been told. Try later.",
  processing_error: "The bank could not be asked: nothing was taken. Try again.",
  cancelled: "Nothing was taken.",
  abandoned: "It was not paid within its time. Nothing was taken.",
  limit: "A limit against misuse is reached: try tomorrow, or ask who runs this region.",
};

export function remedyOf(purchase: Purchase): string {
  const found = REMEDIES[purchase.error?.code ?? "abandoned"];
  return found ?? "Try again, or use another card.";
}

const DISABLED: Readonly<Record<string, string>> = {
  card_declined: "the bank does not accept the card any more. Keep another card, then turn it on",
  no_saved_card: "no card is kept. Pay once and keep the card, then turn it on",
  card_removed: "the card was removed. Pay once and keep another, then turn it on",
  address_incomplete:
    "the address is not complete. Complete it under Card and receipts, then turn it on",
  fraud_warning: "the bank warned of a payment. Ask who runs this region, then turn it on",
  disputed: "a payment was disputed with the bank. Once that is settled, turn it on",
  wallet_rebuilt: "the balance was restored from a copy. Look at it, then turn it on",
};

export function whyDisabled(reason: string): string {
  return DISABLED[reason] ?? "of a failure";
}

const KINDS: Readonly<Record<Credits["credits"][number]["kind"], string>> = {
  payment: "Payment",
  credit: "Credit by the operator",
  correction: "Correction",
  reversal: "Taken back: a payment was returned",
  return: "Given back: a payment stands again",
  rebuild: "Balance restored from a copy",
};

export function kindOf({ kind }: { readonly kind: Credits["credits"][number]["kind"] }): string {
  return KINDS[kind];
}

/** Returns a short name of a card. */
export function cardName({
  brand,
  last4,
}: {
  readonly brand: string;
  readonly last4: string;
}): string {
  return `${brand.slice(0, 1).toUpperCase()}${brand.slice(1)} ···· ${last4}`;
}
