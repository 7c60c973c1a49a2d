import { autoTopUpView } from "../../shared/contracts/payments.ts";
import type {
  SavedCard,
  PurchaseError,
  PurchasePage,
  PurchaseRecord,
  CreditPage,
  CreditRow,
} from "../../shared/contracts/payments.ts";
import { creditKindOf } from "../../shared/credit-reference.ts";
import { timestamp } from "../../shared/clock.ts";
import { dollarsOf, micros } from "../../shared/money.ts";

/** Messages for purchase errors, which don't reveal that a card was lost or stolen. */
const ERRORS: Readonly<Record<PurchaseError, string>> = {
  card_declined: "The card was declined. Use another card, or ask your bank.",
  insufficient_funds: "The card has insufficient funds.",
  expired_card: "The card has expired. Save another card at checkout.",
  authentication_failed: "The bank's confirmation failed. Pay through checkout instead.",
  no_saved_card: "No card is saved. First buy credits through checkout with save_card.",
  card_removed: "The saved card was removed. Save another card at checkout.",
  address_incomplete: "The billing address is incomplete. Complete it in the billing portal.",
  customer_gone: "The billing account was removed. The next purchase creates a new one.",
  processing_error: "The payment could not be processed. Nothing was charged.",
  cancelled: "The purchase was cancelled.",
  abandoned: "The checkout expired without a payment.",
  misconfigured: "The payment could not be made. Please contact support.",
};

function cardView(card: SavedCard | null) {
  if (card === null) return null;
  return {
    brand: card.brand,
    last4: card.last4,
    exp_month: card.expMonth,
    exp_year: card.expYear,
  };
}

export function purchaseView(purchase: PurchaseRecord) {
  const { error, expiresAt } = purchase;
  return {
    id: purchase.id,
    state: purchase.state,
    method: purchase.method,
    amount_dollars: dollarsOf(purchase.amountMicro),
    credited_micro: purchase.creditedMicro,
    returned_micro: purchase.returnedMicro,
    url: purchase.url,
    error: error === null ? null : { code: error, message: ERRORS[error] },
    save_card: purchase.saveCard,
    card: cardView(purchase.card),
    created_at: timestamp(purchase.createdAt),
    updated_at: timestamp(purchase.updatedAt),
    expires_at: expiresAt === null ? null : timestamp(expiresAt),
  };
}

export function operatorPurchaseView(purchase: PurchaseRecord) {
  const { nextAt } = purchase;
  return {
    ...purchaseView(purchase),
    actor: purchase.actor,
    customer_id: purchase.customerId,
    session_id: purchase.sessionId,
    invoice_id: purchase.invoiceId,
    payment_id: purchase.paymentId,
    step: purchase.step,
    tries: purchase.tries,
    next_at: nextAt === null ? null : timestamp(nextAt),
    request_id: purchase.requestId,
  };
}

export function purchasePageView<Purchase>(
  { purchases, nextAfter }: PurchasePage,
  view: (purchase: PurchaseRecord) => Purchase,
) {
  return { purchases: purchases.map(view), next_after: nextAfter };
}

type SaleLimits = {
  readonly dollarsMin: number;
  readonly dollarsMax: number;
  readonly card: SavedCard | null;
} | null;

export function creditPageView(page: CreditPage, limits: SaleLimits) {
  const { credits, nextAfter, standing: status, lifetime } = page;
  const { topUp, owedMicro, autoTopUp } = status;
  return {
    credits: credits.map(creditView),
    next_after: nextAfter,
    owed_micro: owedMicro,
    sold:
      limits === null
        ? null
        : {
            dollars_min: limits.dollarsMin,
            dollars_max: limits.dollarsMax,
            card: cardView(limits.card),
          },
    auto_top_up: autoTopUpView(autoTopUp),
    top_up: {
      purchase_id: topUp.purchaseId,
      month_micro: topUp.monthMicro,
      paused_until: topUp.pausedUntil === null ? null : timestamp(topUp.pausedUntil),
      disabled_reason: topUp.disabledReason,
    },
    data: lifetimeView(lifetime),
  };
}

/** Returns the lifetime credits and usage. OpenRouter's clients show their difference as the balance. */
function lifetimeView({ balanceMicro, usedMicro }: CreditPage["lifetime"]) {
  return {
    total_credits: dollarsOf(micros(balanceMicro + usedMicro)),
    total_usage: dollarsOf(usedMicro),
  };
}

function creditView(row: CreditRow) {
  return {
    id: String(row.seq),
    created_at: timestamp(row.createdAt),
    kind: creditKindOf(row),
    amount_micro: row.amountMicro,
    balance_micro: row.balanceMicro,
    reference: row.reference,
    purchase_id: row.purchaseId,
  };
}
