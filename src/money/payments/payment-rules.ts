import type { SavedCard, PurchaseError, PurchaseRequest } from "../../shared/contracts/payments.ts";
import { micros, MICROS_PER_DOLLAR } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
import type { StripeErrorDetails } from "./stripe.ts";
import type { StripePaymentIntent } from "./stripe-objects.ts";
import type { NumericConfigVariables } from "../../shared/config/config.ts";
import { refuse } from "../../shared/failure.ts";
import type { Failure, Refusal } from "../../shared/failure.ts";
import type { CapturedPaymentAmounts, Purchase } from "./purchase.ts";
import { DAY_MS, HOUR_MS, WEEK_MS } from "../../shared/clock.ts";

const CENT_MICROS = 10_000n;

/**
 * Returns the credits for a payment: the requested amount or, if lower, the total without tax. A
 * partial payment gets a proportional part, rounded down.
 */
export function computePaymentCredits(
  askedMicro: Micros,
  captured: CapturedPaymentAmounts,
): Micros {
  const { receivedCents, totalCents, taxCents } = captured;
  if (totalCents <= 0) return micros(0);
  const untaxed = BigInt(Math.max(0, totalCents - taxCents)) * CENT_MICROS;
  const requested = BigInt(askedMicro);
  const full = requested < untaxed ? requested : untaxed;
  if (receivedCents >= totalCents) return micros(Number(full));
  return micros(Number((full * BigInt(receivedCents)) / BigInt(totalCents)));
}

/** Returns the tax in a payment. A partial payment contains a proportional part, rounded down. */
export function computePaymentTax({
  receivedCents,
  totalCents,
  taxCents,
}: CapturedPaymentAmounts): Micros {
  if (totalCents <= 0) return micros(0);
  const received = BigInt(Math.min(receivedCents, totalCents));
  return micros(Number((BigInt(taxCents) * CENT_MICROS * received) / BigInt(totalCents)));
}

type Refund = { readonly amount: number; readonly status: string | null };
type Dispute = {
  readonly amount: number;
  readonly status: string;
  readonly balance_transactions: readonly { readonly amount: number }[];
};

const INQUIRY_STATUSES = new Set([
  "warning_needs_response",
  "warning_under_review",
  "warning_closed",
  "prevented",
]);
const WITHDRAWN_STATUSES = new Set([
  "needs_response",
  "under_review",
  "lost",
  "appeal_needs_response",
  "appeal_under_review",
]);
const FAILED_REFUND_STATUSES = new Set(["failed", "canceled"]);

/**
 * Returns the cents of a payment that were refunded or lost in disputes. If `isUnknown`, a dispute
 * has an unknown status and counts as lost.
 */
export function computeRefundedCents(
  receivedCents: number,
  refunds: readonly Refund[],
  disputes: readonly Dispute[],
): { readonly cents: number; readonly isDisputed: boolean; readonly isUnknown: boolean } {
  const refunded = refunds
    .filter(({ status }) => !FAILED_REFUND_STATUSES.has(status ?? ""))
    .reduce((sum, { amount }) => sum + amount, 0);
  const disputed = disputes.reduce((sum, one) => sum + withdrawnCents(one), 0);
  return {
    cents: Math.min(receivedCents, refunded + disputed),
    isDisputed: disputes.some((one) => withdrawnCents(one) > 0),
    isUnknown: disputes.some(
      ({ status }) =>
        status !== "won" && !INQUIRY_STATUSES.has(status) && !WITHDRAWN_STATUSES.has(status),
    ),
  };
}

function withdrawnCents({ amount, status, balance_transactions: moved }: Dispute): number {
  if (INQUIRY_STATUSES.has(status)) return 0;
  if (status !== "won") return amount;
  // Balance transactions can have a different currency than the dispute, so only the ratio of their
  // amounts is used.
  const disputedAmount = -(moved.find((one) => one.amount < 0)?.amount ?? 0);
  const lostAmount = -moved.reduce((sum, one) => sum + one.amount, 0);
  if (disputedAmount <= 0 || lostAmount <= 0) return 0;
  return Math.min(amount, Math.ceil((amount * lostAmount) / disputedAmount));
}

/** Returns the credits to take back for a refund or dispute, rounded up. */
export function computeRefundedCredits(
  creditedMicro: Micros,
  returnedCents: number,
  receivedCents: number,
): Micros {
  if (returnedCents <= 0 || receivedCents <= 0) return micros(0);
  const share = BigInt(creditedMicro) * BigInt(Math.min(returnedCents, receivedCents));
  return micros(Number((share + BigInt(receivedCents) - 1n) / BigInt(receivedCents)));
}

const HARD_DECLINE_CODES = new Set(
  `lost_card stolen_card pickup_card restricted_card fraudulent merchant_blacklist expired_card
  invalid_account incorrect_number card_not_supported currency_not_supported transaction_not_allowed
  revocation_of_authorization revocation_of_all_authorizations stop_payment_order security_violation`.split(
    /\s+/,
  ),
);
const HARD_ADVICE_CODES = new Set(["do_not_try_again", "confirm_card_data"]);

/** The reason for a declined charge. If `isHard`, the wallet turns off automatic top-up. */
type Decline = { readonly error: PurchaseError; readonly isHard: boolean };

/** Errors by decline code of Stripe or the bank. Other codes mean `card_declined`. */
const ERRORS: Readonly<Record<string, PurchaseError>> = {
  insufficient_funds: "insufficient_funds",
  expired_card: "expired_card",
  authentication_required: "authentication_failed",
  payment_intent_authentication_failure: "authentication_failed",
  customer_tax_location_invalid: "address_incomplete",
  processing_error: "processing_error",
};

export function declineReasonOf(refusal: StripeErrorDetails): Decline {
  const why = refusal.decline_code ?? refusal.code ?? "";
  const error = ERRORS[why] ?? "card_declined";
  // If there is no code from the bank, Stripe itself blocked the charge.
  const isBlocked = why === "card_declined";
  const isHard =
    isBlocked || HARD_DECLINE_CODES.has(why) || HARD_ADVICE_CODES.has(refusal.advice_code ?? "");
  return { error, isHard: isHard || error === "address_incomplete" };
}

export function cardOfPaymentIntent(intent: StripePaymentIntent): SavedCard | null {
  const card = intent.latest_charge?.payment_method_details?.card;
  if (card === null || card === undefined) return null;
  return {
    brand: (card.brand ?? "card").slice(0, 40),
    last4: (card.last4 ?? "").slice(0, 4),
    expMonth: card.exp_month ?? 0,
    expYear: card.exp_year ?? 0,
  };
}

/** Returns Stripe's fingerprint of the card, which is the same in all organizations. */
export function cardFingerprintOf(intent: StripePaymentIntent): string | null {
  return intent.latest_charge?.payment_method_details?.card?.fingerprint?.slice(0, 100) ?? null;
}

const RETRY_DELAY_MS = 5000;
const RETRY_DELAY_MAX_MS = 600_000;

export function purchaseRetryDelayMs(tries: number): number {
  return Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MS * 2 ** Math.min(20, Math.max(0, tries - 1)));
}

const CHECKOUTS_AN_HOUR = 5;
/** Maximum declined purchases in 24 hours. At the maximum, only automatic purchases are allowed. */
const DECLINES_A_DAY = 3;

function countsTowardDollarLimits({ state, method }: Purchase): boolean {
  return method !== "auto" && state !== "declined" && state !== "expired";
}

type PurchaseLimit = Extract<Failure, { readonly kind: "purchase_limit" }>;

/** Rejects a purchase above a limit. `recent` contains the purchases of the last 48 hours. */
export function checkPurchaseLimits(
  buying: PurchaseRequest,
  recent: readonly Purchase[],
  { numbers, nowMs }: { readonly numbers: NumericConfigVariables; readonly nowMs: number },
): Refusal | null {
  const { method, amountMicro, orgCreatedAt, isPerson } = buying;
  const since = (ms: number, which: (one: Purchase) => boolean): readonly Purchase[] =>
    recent.filter((one) => one.createdAt > nowMs - ms && which(one));
  const limited = (
    why: PurchaseLimit["why"],
    limit: number,
    within: readonly Purchase[],
    ms: number,
  ) => {
    const oldest = within[0]?.createdAt ?? nowMs;
    return refuse({ kind: "purchase_limit", why, limit, retryAfterMs: oldest + ms - nowMs });
  };
  const dollars = (ones: readonly Purchase[]): number =>
    ones.reduce((sum, one) => sum + one.amountMicro, amountMicro as number) / MICROS_PER_DOLLAR;
  const today = since(DAY_MS, countsTowardDollarLimits);
  if (nowMs - orgCreatedAt < WEEK_MS && dollars(today) > numbers.FIRST_WEEK_DOLLARS_A_DAY) {
    return limited("first_week", numbers.FIRST_WEEK_DOLLARS_A_DAY, today, DAY_MS);
  }
  if (dollars(today) > numbers.PURCHASE_DOLLARS_A_DAY) {
    return limited("day", numbers.PURCHASE_DOLLARS_A_DAY, today, DAY_MS);
  }
  const declined = since(
    DAY_MS,
    (one) => one.state === "declined" && one.error !== "misconfigured",
  );
  if (declined.length >= DECLINES_A_DAY) {
    return limited("declines", DECLINES_A_DAY, declined, DAY_MS);
  }
  if (method === "card") {
    const charged = today.filter((one) => one.method === "card");
    const isOver = !isPerson && dollars(charged) > numbers.CARD_DOLLARS_A_DAY;
    return isOver ? limited("card_day", numbers.CARD_DOLLARS_A_DAY, charged, DAY_MS) : null;
  }
  const started = since(HOUR_MS, (one) => one.method === "checkout");
  if (started.length >= CHECKOUTS_AN_HOUR) {
    return limited("checkouts", CHECKOUTS_AN_HOUR, started, HOUR_MS);
  }
  return null;
}
