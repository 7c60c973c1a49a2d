import { logAlert } from "../../shared/log.ts";
import { micros } from "../../shared/money.ts";
import {
  cardOfPaymentIntent,
  cardFingerprintOf,
  computePaymentCredits,
  purchaseRetryDelayMs,
} from "./payment-rules.ts";
import {
  closeMismatchedInvoice,
  endPurchase,
  declineMisconfiguredPurchase,
  moveToPurchaseStep,
  schedulePurchaseRetry,
  markWaitingForCustomer,
  storePurchase,
} from "./purchase-transitions.ts";
import { createDeclinedEnding, isPurchaseEnded } from "./purchase.ts";
import type { CapturedPaymentAmounts, Purchase, PaymentDeps } from "./purchase.ts";
import { recoverLostCheckout } from "./steps.ts";
import type { PurchaseStepFunction } from "./steps.ts";
import { parseStripeBody } from "./stripe.ts";
import type { RefusedStripeCall, StripeCall } from "./stripe.ts";
import {
  isInvoicedAmountCorrect,
  buildPostCall,
  buildReadInvoiceCall,
  buildReadCheckoutSessionCall,
} from "./stripe-calls.ts";
import { invoiceSchema, checkoutSessionSchema } from "./stripe-objects.ts";
import type { StripePaymentIntent, Invoice, CheckoutSession } from "./stripe-objects.ts";
import { HOUR_MS } from "../../shared/clock.ts";

const RECHECK_MS = 600_000;
const CONFIRMATION_MAX_MS = 23 * HOUR_MS;
const ABANDONED = { state: "expired", error: "abandoned", isHard: false } as const;

/** Reads a purchase's result from its Stripe object, never from a webhook event. */
export const readPurchaseStep: PurchaseStepFunction = async (deps, purchase) => {
  if (purchase.invoiceId !== null) return readInvoiceStep(deps, purchase, purchase.invoiceId);
  if (purchase.sessionId !== null) return readSessionStep(deps, purchase, purchase.sessionId);
  if (purchase.method === "checkout") return recoverLostCheckout(deps, purchase);
  return purchase.ending === null
    ? moveToPurchaseStep(deps, purchase, "customer")
    : endPurchase(deps, purchase, purchase.ending);
};

async function readSessionStep(
  deps: PaymentDeps,
  purchase: Purchase,
  id: string,
): Promise<Purchase> {
  const answer = await deps.stripe.ask(buildReadCheckoutSessionCall(id));
  const now = deps.rows.purchase(purchase.id) ?? purchase;
  if (answer.kind === "refused") return handleRefusedRead(deps, now, answer);
  const session = parseStripeBody(answer, checkoutSessionSchema);
  if (session === null) return schedulePurchaseRetry(deps, now, answer);
  const intent = intentOf(session);
  if (session.payment_status !== "paid" || intent === null || !isCaptured(intent)) {
    return handleUnpaidSession(deps, now, session);
  }
  return recordPayment(deps, now, intent, {
    receivedCents: intent.amount_received,
    totalCents: session.amount_total ?? intent.amount,
    taxCents: session.total_details?.amount_tax ?? 0,
  });
}

function handleUnpaidSession(
  deps: PaymentDeps,
  purchase: Purchase,
  session: CheckoutSession,
): Purchase {
  const { status, url = null } = session;
  if (isPurchaseEnded(purchase)) return storePurchase(deps, purchase, { step: null, nextAt: null });
  if (status === "expired") return endPurchase(deps, purchase, purchase.ending ?? ABANDONED);
  if (status === "complete") {
    return storePurchase(deps, purchase, { nextAt: deps.now() + RECHECK_MS });
  }
  const expiresAt = session.expires_at * 1000;
  const isClosing = purchase.ending !== null || deps.now() >= expiresAt;
  if (!isClosing) return markWaitingForCustomer(deps, purchase, { url, expiresAt });
  const ending = purchase.ending ?? ABANDONED;
  return moveToPurchaseStep(deps, purchase, "expire", { ending, tries: purchase.tries });
}

function intentOf({ payment_intent: intent }: CheckoutSession): StripePaymentIntent | null {
  return typeof intent === "object" ? (intent ?? null) : null;
}

const isCaptured = ({ status, amount_received }: StripePaymentIntent): boolean =>
  status === "succeeded" && amount_received > 0;

async function readInvoiceStep(
  deps: PaymentDeps,
  purchase: Purchase,
  id: string,
): Promise<Purchase> {
  const answer = await deps.stripe.ask(buildReadInvoiceCall(id));
  const now = deps.rows.purchase(purchase.id) ?? purchase;
  if (answer.kind === "refused") return handleRefusedRead(deps, now, answer);
  const invoice = parseStripeBody(answer, invoiceSchema);
  if (invoice === null) return schedulePurchaseRetry(deps, now, answer);
  const intents = intentsOf(invoice);
  const captured = intents.filter(isCaptured);
  const [intent] = captured;
  if (captured.length > 1) logAlert("payment_twice", { id: now.id, invoice_id: invoice.id });
  if (intent !== undefined) {
    const taxCents = (invoice.total_taxes ?? []).reduce((sum, { amount }) => sum + amount, 0);
    const totalCents = invoice.total;
    return recordPayment(deps, now, intent, {
      receivedCents: intent.amount_received,
      totalCents,
      taxCents,
    });
  }
  if (isPurchaseEnded(now)) return storePurchase(deps, now, { step: null, nextAt: null });
  return handleUnpaidInvoice(deps, now, { invoice, intents });
}

function intentsOf({ payments }: Invoice): readonly StripePaymentIntent[] {
  return (payments?.data ?? []).flatMap(({ payment: { payment_intent: intent } }) =>
    typeof intent === "object" && intent !== null ? [intent] : [],
  );
}

const needsConfirmation = ({ status, last_payment_error: error }: StripePaymentIntent): boolean =>
  status === "requires_action" || error?.code === "authentication_required";

type UnpaidInvoice = {
  readonly invoice: Invoice;
  readonly intents: readonly StripePaymentIntent[];
};

function handleUnpaidInvoice(
  deps: PaymentDeps,
  purchase: Purchase,
  { invoice, intents }: UnpaidInvoice,
): Purchase {
  const { ending } = purchase;
  switch (invoice.status ?? "open") {
    case "void":
    case "uncollectible":
      return endPurchase(deps, purchase, ending ?? ABANDONED);
    case "paid":
      // An invoice that was paid outside Stripe or from a Stripe balance credits nothing.
      logAlert("invoice_paid_without_payment", { id: purchase.id, invoice_id: invoice.id });
      return endPurchase(deps, purchase, ending ?? createDeclinedEnding("misconfigured"));
    case "draft":
      return moveToPurchaseStep(deps, purchase, ending === null ? "item" : "discard");
    default:
      if (ending === null && !isInvoicedAmountCorrect(purchase, invoice)) {
        return closeMismatchedInvoice(deps, purchase, invoice);
      }
      return handleOpenInvoice(deps, purchase, { invoice, intents });
  }
}

function handleOpenInvoice(
  deps: PaymentDeps,
  purchase: Purchase,
  { invoice, intents }: UnpaidInvoice,
): Purchase {
  const { ending, tries } = purchase;
  const isProcessing = intents.some(({ status }) => status === "processing");
  if (isProcessing) return storePurchase(deps, purchase, { nextAt: deps.now() + RECHECK_MS });
  const hasWaited = purchase.state === "needs_customer" || purchase.url !== null;
  // Until the customer confirms a charge, Stripe reports it as declined.
  const canWait = hasWaited ? ending === null : ending?.state !== "expired";
  if (canWait && (hasWaited || intents.some(needsConfirmation))) {
    const url = invoice.hosted_invoice_url ?? null;
    const expiresAt = purchase.expiresAt ?? purchase.createdAt + CONFIRMATION_MAX_MS;
    if (deps.now() < expiresAt) return markWaitingForCustomer(deps, purchase, { url, expiresAt });
    return moveToPurchaseStep(deps, purchase, "void", { ending: ABANDONED });
  }
  return moveToPurchaseStep(deps, purchase, ending === null ? "pay" : "void", { tries });
}

function recordPayment(
  deps: PaymentDeps,
  purchase: Purchase,
  intent: StripePaymentIntent,
  captured: CapturedPaymentAmounts,
): Purchase {
  const { rows, isLive } = deps;
  const { customerId, id, amountMicro } = purchase;
  if (intent.livemode !== isLive || intent.customer !== customerId) {
    logAlert("payment_mismatch", { id, payment_id: intent.id });
    return storePurchase(deps, purchase, { nextAt: deps.now() + HOUR_MS });
  }
  const netMicro = computePaymentCredits(amountMicro, captured);
  if (netMicro !== amountMicro) logAlert("payment_differs", { id, payment_id: intent.id });
  const card = cardOfPaymentIntent(intent);
  if (rows.payment(intent.id) === null) {
    rows.putPayment({
      ...captured,
      id: intent.id,
      purchaseId: id,
      netMicro,
      capturedAt: deps.now(),
      isCredited: false,
      fingerprint: cardFingerprintOf(intent),
      backMicro: micros(0),
      reading: 0,
    });
  }
  const { payment_method: paymentMethod } = intent;
  if (purchase.saveCard && card !== null && typeof paymentMethod === "string") {
    rows.setHead({ ...rows.head(), card: { ...card, paymentMethod } });
  }
  return moveToPurchaseStep(deps, purchase, "credit", {
    state: "paid",
    paymentId: intent.id,
    ending: null,
    error: null,
    url: null,
    expiresAt: null,
    card: card ?? purchase.card,
  });
}

function handleRefusedRead(
  deps: PaymentDeps,
  purchase: Purchase,
  refusal: RefusedStripeCall,
): Purchase {
  if (isPurchaseEnded(purchase)) return storePurchase(deps, purchase, { step: null, nextAt: null });
  return declineMisconfiguredPurchase(deps, purchase, refusal);
}

/**
 * Closes a purchase's Stripe object. If Stripe rejects the call, reads the object again, because it
 * may have been paid.
 */
async function closeStripeObject(
  deps: PaymentDeps,
  purchase: Purchase,
  call: StripeCall,
  isClosed: (body: unknown) => boolean,
): Promise<Purchase> {
  const answer = await deps.stripe.ask(call);
  const now = deps.rows.purchase(purchase.id) ?? purchase;
  if (answer.kind === "done" && isClosed(answer.body)) {
    return endPurchase(deps, now, now.ending ?? ABANDONED);
  }
  const tries = now.tries + 1;
  return moveToPurchaseStep(deps, now, "read", {
    tries,
    nextAt: deps.now() + purchaseRetryDelayMs(tries),
  });
}

function isObject(
  body: unknown,
): body is { readonly status?: unknown; readonly deleted?: unknown } {
  return typeof body === "object" && body !== null;
}

const hasStatus = (status: string) => (body: unknown) => isObject(body) && body.status === status;

export const expireCheckoutStep: PurchaseStepFunction = async (deps, purchase) => {
  const { id, sessionId } = purchase;
  const key = `${id}:expire:${purchase.tries}`;
  const call = buildPostCall(`/v1/checkout/sessions/${sessionId}/expire`, {}, key);
  return closeStripeObject(deps, purchase, call, hasStatus("expired"));
};

export const voidInvoiceStep: PurchaseStepFunction = async (deps, purchase) => {
  const { id, invoiceId } = purchase;
  const call = buildPostCall(`/v1/invoices/${invoiceId}/void`, {}, `${id}:void:${purchase.tries}`);
  return closeStripeObject(deps, purchase, call, hasStatus("void"));
};

export const discardInvoiceStep: PurchaseStepFunction = async (deps, purchase) => {
  const path = `/v1/invoices/${purchase.invoiceId}`;
  const call = { method: "DELETE", path, body: null, key: null } as const;
  return closeStripeObject(deps, purchase, call, (body) => {
    return isObject(body) && body.deleted === true;
  });
};
