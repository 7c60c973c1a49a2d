import type { TopUpFailure } from "../../shared/contracts/payments.ts";
import { SYSTEM_ACTOR } from "../../shared/event.ts";
import type { EventData, EventType } from "../../shared/event.ts";
import { logAlert } from "../../shared/log.ts";
import { purchaseRetryDelayMs } from "./payment-rules.ts";
import { createDeclinedEnding, isPurchaseEnded } from "./purchase.ts";
import type { PurchaseEnding, Purchase, PurchaseStep, PaymentDeps } from "./purchase.ts";
import type { Invoice } from "./stripe-objects.ts";
import type { StripeResult } from "./stripe.ts";

type PurchaseChange = Partial<Purchase>;

/** Ms to wait after a customer's deadline, because Stripe's clock may be slow. */
const GRACE_MS = 60_000;

export function storePurchase(
  { rows, now }: PaymentDeps,
  purchase: Purchase,
  change: PurchaseChange,
): Purchase {
  const after = { ...purchase, ...change, updatedAt: now() };
  rows.putPurchase(after);
  return after;
}

export function moveToPurchaseStep(
  deps: PaymentDeps,
  purchase: Purchase,
  step: PurchaseStep,
  change: PurchaseChange = {},
): Purchase {
  const started = { step, sent: null, tries: 0, anew: 0, nextAt: deps.now() };
  return storePurchase(deps, purchase, { ...started, ...change });
}

export function schedulePurchaseRetry(
  deps: PaymentDeps,
  purchase: Purchase,
  answer?: StripeResult,
): Purchase {
  const tries = purchase.tries + 1;
  if (answer?.kind === "unsure" && (answer.status === 401 || answer.status === 403)) {
    logAlert("stripe_key_refused", { org_id: deps.rows.head().orgId, status: answer.status });
  }
  return storePurchase(deps, purchase, {
    state: isPurchaseEnded(purchase) || purchase.state === "paid" ? purchase.state : "unknown",
    tries,
    nextAt: deps.now() + purchaseRetryDelayMs(tries),
    requestId: answer?.requestId ?? purchase.requestId,
  });
}

/** Repeats a step with a new idempotency key. The step must not move money. */
export function restartPurchaseStep(deps: PaymentDeps, purchase: Purchase): Purchase {
  const tries = purchase.tries + 1;
  const nextAt = deps.now() + purchaseRetryDelayMs(tries);
  return storePurchase(deps, purchase, { sent: null, tries, anew: purchase.anew + 1, nextAt });
}

/** Stores that the customer must pay or confirm at a URL. */
export function markWaitingForCustomer(
  deps: PaymentDeps,
  purchase: Purchase,
  at: { readonly url: string | null; readonly expiresAt: number },
): Purchase {
  const isFirstWait = purchase.state !== "needs_customer" && purchase.url === null;
  const waiting = {
    state: "needs_customer",
    step: "read",
    sent: null,
    tries: 0,
    ending: null,
    url: at.url ?? purchase.url,
    expiresAt: at.expiresAt,
    nextAt: at.expiresAt + GRACE_MS,
  } as const;
  const after = storePurchase(deps, purchase, waiting);
  return isFirstWait
    ? queuePurchaseEvent(deps, after, { type: "purchase.needs_customer", data: {} })
    : after;
}

/** Ends an unpaid purchase. A later payment is still credited. */
export function endPurchase(
  deps: PaymentDeps,
  purchase: Purchase,
  ending: PurchaseEnding,
): Purchase {
  const { state, error } = ending;
  const over = { state, error, step: null, sent: null, url: null, expiresAt: null, nextAt: null };
  const after = storePurchase(deps, purchase, { ...over, ending });
  return queuePurchaseEvent(deps, after, {
    type: `purchase.${state}`,
    data: { code: error },
    ending,
  });
}

/** Declines a purchase whose invoice has a wrong amount. */
export function closeMismatchedInvoice(
  deps: PaymentDeps,
  purchase: Purchase,
  { id, status }: Invoice,
): Purchase {
  logAlert("invoice_differs", { id: purchase.id, invoice_id: id });
  const ending = createDeclinedEnding("processing_error");
  return moveToPurchaseStep(deps, purchase, status === "draft" ? "discard" : "void", { ending });
}

export function declineMisconfiguredPurchase(
  deps: PaymentDeps,
  purchase: Purchase,
  answer: StripeResult,
): Purchase {
  const { id, step } = purchase;
  const why = answer.kind === "refused" ? (answer.error.code ?? answer.error.type ?? "") : "answer";
  logAlert("purchase_misconfigured", { id, step, why, request_id: answer.requestId });
  return endPurchase(deps, purchase, createDeclinedEnding("misconfigured"));
}

/**
 * Queues a purchase's event, which the wallet records for webhooks. Not for `purchase.credited`,
 * refund events and a top-up's `purchase.created`, which the wallet adds itself.
 */
export function queuePurchaseEvent(
  deps: PaymentDeps,
  purchase: Purchase,
  reported: {
    readonly type: EventType;
    readonly data: EventData;
    readonly ending?: PurchaseEnding;
  },
): Purchase {
  const { type, data, ending } = reported;
  const { id, method, amountMicro, actor } = purchase;
  const event = {
    type,
    actor: type === "purchase.created" ? actor : SYSTEM_ACTOR,
    subject: id,
    data: { method, amount_micro: amountMicro, ...data },
  };
  const topUp = ending === undefined || method !== "auto" ? null : { id, end: topUpEnd(ending) };
  const untold = [...purchase.untold, { event, once: [id, type], topUp }];
  return storePurchase(deps, purchase, { untold, tellAt: deps.now() });
}

/** Errors that are also reasons to turn off automatic top-up. */
const DISABLING_ERRORS = ["no_saved_card", "card_removed", "address_incomplete"] as const;

function topUpEnd({ error, isHard }: PurchaseEnding): TopUpFailure {
  if (!isHard) return { kind: "soft" };
  const reason = DISABLING_ERRORS.find((one) => one === error) ?? "card_declined";
  return { kind: "hard", reason };
}
