import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { declineReasonOf, purchaseRetryDelayMs } from "./payment-rules.ts";
import {
  restartPurchaseStep,
  closeMismatchedInvoice,
  endPurchase,
  declineMisconfiguredPurchase,
  moveToPurchaseStep,
  schedulePurchaseRetry,
  markWaitingForCustomer,
  storePurchase,
} from "./purchase-transitions.ts";
import { createDeclinedEnding, isPurchaseEnded } from "./purchase.ts";
import type { Purchase, PaymentDeps } from "./purchase.ts";
import {
  buildCustomerParams,
  FINALIZE_INVOICE_PARAMS,
  buildInvoiceParams,
  isInvoicedAmountCorrect,
  buildInvoiceItemParams,
  buildListCreatedSinceCall,
  buildPayInvoiceParams,
  buildReadInvoiceCall,
  buildCheckoutSessionParams,
} from "./stripe-calls.ts";
import type { PurchaseForStripe } from "./stripe-calls.ts";
import {
  objectListSchema,
  stripeIdSchema,
  invoiceSchema,
  checkoutSessionSchema,
} from "./stripe-objects.ts";
import type { Invoice } from "./stripe-objects.ts";
import { encodeForm, parseStripeBody } from "./stripe.ts";
import type { RefusedStripeCall, StripeParams, StripeResult } from "./stripe.ts";

/** A step of a purchase. Changes at most one thing at Stripe. */
export type PurchaseStepFunction = (deps: PaymentDeps, purchase: Purchase) => Promise<Purchase>;

const FAULTS_MAX = 3;
/**
 * Maximum ms to retry a call. It is shorter for checkouts, because Stripe rejects a checkout that
 * expires within half an hour.
 */
const CALL_RETRY_MS = 23 * 3_600_000;
const CHECKOUT_RETRY_MS = 25 * 60_000;

/** Sends the Stripe call of a step. Retries send the same bytes. */
async function sendStepCall(
  deps: PaymentDeps,
  purchase: Purchase,
  call: { readonly path: string; readonly params: StripeParams; readonly key: string },
): Promise<{ readonly answer: StripeResult; readonly now: Purchase }> {
  const { id, step, state } = purchase;
  const { path, params, key } = call;
  const body = encodeForm(params);
  const first = { step: step ?? "read", path, body, key, firstAt: deps.now() };
  const sent = purchase.sent?.step === step ? purchase.sent : first;
  storePurchase(deps, purchase, { sent, state: isPurchaseEnded(purchase) ? state : "asked" });
  const answer = await deps.stripe.ask({ ...sent, method: "POST" });
  const now = deps.rows.purchase(id) ?? purchase;
  return {
    answer,
    now:
      answer.requestId === null ? now : storePurchase(deps, now, { requestId: answer.requestId }),
  };
}

/** Reports whether to stop retrying a call whose result is unknown. */
function mustStopRetrying(
  { now }: PaymentDeps,
  { sent, tries }: Purchase,
  answer: StripeResult,
): boolean {
  if (answer.kind !== "unsure") return false;
  const limit = sent?.step === "session" ? CHECKOUT_RETRY_MS : CALL_RETRY_MS;
  const isFault = answer.status !== null && answer.status >= 500 && tries >= FAULTS_MAX;
  return answer.isStored || isFault || now() - (sent?.firstAt ?? now()) > limit;
}

const idempotencyKeyOf = ({ id, step, anew: again }: Purchase): string =>
  again === 0 ? `${id}:${step}` : `${id}:${step}:${again + 1}`;

function saleOf(
  { region, hasTax, taxCode, rows }: PaymentDeps,
  purchase: Purchase,
): PurchaseForStripe {
  const customerId = purchase.customerId ?? "";
  return { ...purchase, orgId: rows.head().orgId, customerId, region, hasTax, taxCode };
}

/** Creates the Stripe customer if needed, and stores it before its first use. */
export const createCustomerStep: PurchaseStepFunction = async (deps, purchase) => {
  const { rows, store } = deps;
  const head = rows.head();
  if (head.customer === null) {
    return purchase.ending === null
      ? createCustomer(deps, purchase)
      : endPurchase(deps, purchase, purchase.ending);
  }
  const { id, isBooked } = head.customer;
  if (!isBooked) {
    try {
      await store.addCustomer(id, head.orgId);
    } catch (error) {
      logWarning("customer_not_booked", { org_id: head.orgId, reason: errorMessageOf(error) });
      return schedulePurchaseRetry(deps, rows.purchase(purchase.id) ?? purchase);
    }
    const after = rows.head();
    if (after.customer?.id === id) rows.setHead({ ...after, customer: { id, isBooked: true } });
  }
  return continueAfterCustomer(deps, rows.purchase(purchase.id) ?? purchase, id);
};

async function createCustomer(deps: PaymentDeps, purchase: Purchase): Promise<Purchase> {
  const { rows, region } = deps;
  const { orgId, orgName, customers } = rows.head();
  const key = customers === 0 ? `cus:${orgId}` : `cus:${orgId}:${customers + 1}`;
  const params = buildCustomerParams({ orgId, orgName, region });
  const { answer, now } = await sendStepCall(deps, purchase, {
    path: "/v1/customers",
    params,
    key,
  });
  if (answer.kind === "refused") return declineMisconfiguredPurchase(deps, now, answer);
  const made = parseStripeBody(answer, stripeIdSchema);
  const head = rows.head();
  if (made === null) {
    if (!mustStopRetrying(deps, now, answer)) return schedulePurchaseRetry(deps, now, answer);
    // If Stripe created a customer despite the failed call, that customer stays unused.
    rows.setHead({ ...head, customers: Math.max(head.customers, customers + 1) });
    return storePurchase(deps, schedulePurchaseRetry(deps, now, answer), { sent: null });
  }
  if (head.customer === null) {
    const customer = { id: made.id, isBooked: false };
    rows.setHead({ ...head, customer, customers: customers + 1 });
  }
  return storePurchase(deps, now, { sent: null, tries: 0 });
}

/**
 * Moves a purchase to the first step of its payment method. Waits while another purchase charges
 * the saved card.
 */
function continueAfterCustomer(
  deps: PaymentDeps,
  purchase: Purchase,
  customerId: string,
): Purchase {
  const { rows, now } = deps;
  if (purchase.ending !== null) return endPurchase(deps, purchase, purchase.ending);
  if (purchase.method === "checkout") {
    return moveToPurchaseStep(deps, purchase, "session", { customerId });
  }
  const { card } = rows.head();
  if (card === null) {
    return endPurchase(deps, purchase, createDeclinedEnding("no_saved_card", true));
  }
  if (findRunningCharge(deps, purchase.id) !== null) {
    const tries = purchase.tries + 1;
    return storePurchase(deps, purchase, { tries, nextAt: now() + purchaseRetryDelayMs(tries) });
  }
  const { paymentMethod, ...shown } = card;
  return moveToPurchaseStep(deps, purchase, "invoice", { customerId, paymentMethod, card: shown });
}

/** Returns another purchase that is charging the saved card, or null. */
export function findRunningCharge({ rows }: PaymentDeps, id: string | null): Purchase | null {
  return rows.openPurchases().find((one) => one.id !== id && isRunningCharge(one)) ?? null;
}

const isRunningCharge = (one: Purchase): boolean =>
  one.paymentMethod !== null && !isPurchaseEnded(one);

export const createCheckoutStep: PurchaseStepFunction = async (deps, purchase) => {
  const params = buildCheckoutSessionParams(saleOf(deps, purchase));
  const call = { path: "/v1/checkout/sessions", params, key: purchase.id };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "refused") return handleRefusal(deps, now, answer);
  const made = parseStripeBody(answer, checkoutSessionSchema);
  if (made !== null) {
    const { id: sessionId, url = null, expires_at } = made;
    const known = storePurchase(deps, now, { sessionId });
    if (known.ending !== null) return moveToPurchaseStep(deps, known, "expire");
    return markWaitingForCustomer(deps, known, { url, expiresAt: expires_at * 1000 });
  }
  if (!mustStopRetrying(deps, now, answer)) return schedulePurchaseRetry(deps, now, answer);
  return recoverLostCheckout(deps, now);
};

/**
 * Continues with a checkout whose creation response was lost. If Stripe has no such checkout, ends
 * the purchase.
 */
export async function recoverLostCheckout(
  deps: PaymentDeps,
  purchase: Purchase,
): Promise<Purchase> {
  const found = await findStripeObject(deps, purchase, "checkout/sessions");
  const now = deps.rows.purchase(purchase.id) ?? purchase;
  if (found === undefined) return schedulePurchaseRetry(deps, now);
  if (found !== null) return moveToPurchaseStep(deps, now, "read", { sessionId: found });
  if (isPurchaseEnded(now)) return storePurchase(deps, now, { step: null, nextAt: null });
  return endPurchase(deps, now, createDeclinedEnding("processing_error"));
}

/**
 * Returns the ID of the purchase's Stripe object, null if Stripe doesn't have it, or undefined if
 * Stripe didn't respond.
 */
async function findStripeObject(
  { stripe }: PaymentDeps,
  { id, customerId, createdAt }: Purchase,
  what: "checkout/sessions" | "invoices",
): Promise<string | null | undefined> {
  const answer = await stripe.ask(buildListCreatedSinceCall(what, customerId ?? "", createdAt));
  const list = parseStripeBody(answer, objectListSchema);
  if (list === null) return undefined;
  const own = list.data.find(({ metadata }) => metadata?.["purchase_id"] === id);
  if (own !== undefined) return own.id;
  return list.has_more ? undefined : null;
}

export const createInvoiceStep: PurchaseStepFunction = async (deps, purchase) => {
  const { paymentMethod } = purchase;
  const params = buildInvoiceParams(saleOf(deps, purchase), paymentMethod ?? "");
  const call = { path: "/v1/invoices", params, key: idempotencyKeyOf(purchase) };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "refused") return handleRefusal(deps, now, answer);
  const made = parseStripeBody(answer, stripeIdSchema);
  if (made !== null) return moveToPurchaseStep(deps, now, "item", { invoiceId: made.id });
  if (!mustStopRetrying(deps, now, answer)) return schedulePurchaseRetry(deps, now, answer);
  const found = await findStripeObject(deps, now, "invoices");
  const after = deps.rows.purchase(now.id) ?? now;
  if (found === undefined) return schedulePurchaseRetry(deps, after, answer);
  return found === null
    ? restartPurchaseStep(deps, after)
    : moveToPurchaseStep(deps, after, "item", { invoiceId: found, anew: 1 });
};

export const addInvoiceItemStep: PurchaseStepFunction = async (deps, purchase) => {
  const { invoiceId } = purchase;
  const params = buildInvoiceItemParams(saleOf(deps, purchase), invoiceId ?? "");
  const call = { path: "/v1/invoiceitems", params, key: idempotencyKeyOf(purchase) };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "done") return moveToPurchaseStep(deps, now, "finalize");
  if (answer.kind === "refused") return closeRefusedInvoice(deps, now, answer);
  if (!mustStopRetrying(deps, now, answer)) return schedulePurchaseRetry(deps, now, answer);
  return continueWithInvoice(deps, now, (after, invoice) => {
    if (isInvoicedAmountCorrect(after, invoice)) return moveToPurchaseStep(deps, after, "finalize");
    return invoice.subtotal === 0
      ? restartPurchaseStep(deps, after)
      : closeMismatchedInvoice(deps, after, invoice);
  });
};

export const finalizeInvoiceStep: PurchaseStepFunction = async (deps, purchase) => {
  if (purchase.ending !== null) return moveToPurchaseStep(deps, purchase, "read");
  const path = `/v1/invoices/${purchase.invoiceId}/finalize`;
  const call = { path, params: FINALIZE_INVOICE_PARAMS, key: idempotencyKeyOf(purchase) };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "done") {
    const invoice = parseStripeBody(answer, invoiceSchema);
    if (invoice === null || !isInvoicedAmountCorrect(now, invoice)) {
      return moveToPurchaseStep(deps, now, "read");
    }
    return moveToPurchaseStep(deps, now, "pay");
  }
  if (answer.kind === "unsure" && !mustStopRetrying(deps, now, answer)) {
    return schedulePurchaseRetry(deps, now, answer);
  }
  return continueWithInvoice(deps, now, (after, invoice) => {
    if (invoice.status !== "draft") return moveToPurchaseStep(deps, after, "read");
    return answer.kind === "refused"
      ? closeRefusedInvoice(deps, after, answer)
      : restartPurchaseStep(deps, after);
  });
};

/** Charges the saved card. Never retries a declined charge. */
export const payInvoiceStep: PurchaseStepFunction = async (deps, purchase) => {
  if (purchase.ending !== null) return moveToPurchaseStep(deps, purchase, "read");
  const path = `/v1/invoices/${purchase.invoiceId}/pay`;
  const params = buildPayInvoiceParams(purchase.paymentMethod ?? "");
  const call = { path, params, key: `${purchase.id}:pay` };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "done") return moveToPurchaseStep(deps, now, "read");
  if (answer.kind === "refused") {
    const ending = { state: "declined", ...declineReasonOf(answer.error) } as const;
    if (answer.error.code === "resource_missing") return endWithoutCard(deps, now);
    return moveToPurchaseStep(deps, now, "read", { ending });
  }
  if (!mustStopRetrying(deps, now, answer)) return schedulePurchaseRetry(deps, now, answer);
  return moveToPurchaseStep(deps, now, "read", {
    ending: createDeclinedEnding("processing_error"),
  });
};

async function continueWithInvoice(
  deps: PaymentDeps,
  purchase: Purchase,
  goOn: (after: Purchase, invoice: Invoice) => Purchase,
): Promise<Purchase> {
  const answer = await deps.stripe.ask(buildReadInvoiceCall(purchase.invoiceId ?? ""));
  const after = deps.rows.purchase(purchase.id) ?? purchase;
  const invoice = parseStripeBody(answer, invoiceSchema);
  return invoice === null ? schedulePurchaseRetry(deps, after, answer) : goOn(after, invoice);
}

/** Handles a Stripe error: a deleted customer, a deleted card, or an invalid request from us. */
function handleRefusal(
  deps: PaymentDeps,
  purchase: Purchase,
  refusal: RefusedStripeCall,
): Purchase {
  if (refusal.error.code !== "resource_missing") {
    return declineMisconfiguredPurchase(deps, purchase, refusal);
  }
  if (refusal.error.param !== "customer") return endWithoutCard(deps, purchase);
  const { rows } = deps;
  const head = rows.head();
  if (head.customer?.id === purchase.customerId) {
    rows.setHead({ ...head, customer: null, card: null });
  }
  return endPurchase(deps, purchase, createDeclinedEnding("customer_gone", true));
}

function endWithoutCard(deps: PaymentDeps, purchase: Purchase): Purchase {
  const { rows } = deps;
  const head = rows.head();
  if (head.card?.paymentMethod === purchase.paymentMethod) rows.setHead({ ...head, card: null });
  const ending = createDeclinedEnding("card_removed", true);
  return purchase.invoiceId === null
    ? endPurchase(deps, purchase, ending)
    : moveToPurchaseStep(deps, purchase, "read", { ending });
}

function closeRefusedInvoice(
  deps: PaymentDeps,
  purchase: Purchase,
  refusal: RefusedStripeCall,
): Purchase {
  const isAddress = refusal.error.code === "customer_tax_location_invalid";
  const ending = createDeclinedEnding(
    isAddress ? "address_incomplete" : "misconfigured",
    isAddress,
  );
  return moveToPurchaseStep(deps, purchase, "read", { ending });
}
