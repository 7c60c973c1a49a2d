import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { declineReasonOf, retryDelayMs } from "./payment-rules.ts";
import {
  restartStep,
  closeMismatchedInvoice,
  endPurchase,
  declineAsMisconfigured,
  moveToStep,
  retryLater,
  waitForCustomer,
  storePurchase,
} from "./purchase-transitions.ts";
import { declinedEnding, isEnded } from "./purchase.ts";
import type { Purchase, PaymentDeps } from "./purchase.ts";
import {
  customerParams,
  finalizeParams,
  invoiceParams,
  hasPurchaseAmount,
  itemParams,
  listCreatedSince,
  payParams,
  postCall,
  readInvoice,
  sessionParams,
} from "./stripe-calls.ts";
import type { Sale } from "./stripe-calls.ts";
import { objectListSchema, idSchema, invoiceSchema, sessionSchema } from "./stripe-objects.ts";
import type { Invoice } from "./stripe-objects.ts";
import { parseBody } from "./stripe.ts";
import type { RefusedAnswer, Params, StripeAnswer } from "./stripe.ts";

/** A step of a purchase. Changes at most one thing at Stripe. */
export type RunPurchaseStep = (deps: PaymentDeps, purchase: Purchase) => Promise<Purchase>;

const FAULTS_MAX = 3;
/**
 * Maximum ms to retry a call. Shorter for a checkout: Stripe rejects checkouts that expire within
 * half an hour.
 */
const CALL_RETRY_MS = 23 * 3_600_000;
const CHECKOUT_RETRY_MS = 25 * 60_000;

/** Sends the Stripe call of a step. Retries send the same bytes. */
async function sendStepCall(
  deps: PaymentDeps,
  purchase: Purchase,
  call: { readonly path: string; readonly params: Params; readonly key: string },
): Promise<{ readonly answer: StripeAnswer; readonly now: Purchase }> {
  const { id, step, state } = purchase;
  const { path, params, key } = call;
  const first = { step: step ?? "read", ...postCall(path, params, key), key, firstAt: deps.now() };
  const { method: _method, ...made } = first;
  const sent = purchase.sent?.step === step ? purchase.sent : { ...made, body: made.body ?? "" };
  storePurchase(deps, purchase, { sent, state: isEnded(purchase) ? state : "asked" });
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
  answer: StripeAnswer,
): boolean {
  if (answer.kind !== "unsure") return false;
  const limit = sent?.step === "session" ? CHECKOUT_RETRY_MS : CALL_RETRY_MS;
  const isFault = answer.status !== null && answer.status >= 500 && tries >= FAULTS_MAX;
  return answer.isStored || isFault || now() - (sent?.firstAt ?? now()) > limit;
}

const idempotencyKeyOf = ({ id, step, anew: again }: Purchase): string =>
  again === 0 ? `${id}:${step}` : `${id}:${step}:${again + 1}`;

function saleOf({ region, hasTax, taxCode, rows }: PaymentDeps, purchase: Purchase): Sale {
  const customerId = purchase.customerId ?? "";
  return { ...purchase, orgId: rows.head().orgId, customerId, region, hasTax, taxCode };
}

/** Creates the Stripe customer if needed, and stores it before its first use. */
export const createCustomerStep: RunPurchaseStep = async (deps, purchase) => {
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
      return retryLater(deps, rows.purchase(purchase.id) ?? purchase);
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
  const params = customerParams({ orgId, orgName, region });
  const { answer, now } = await sendStepCall(deps, purchase, {
    path: "/v1/customers",
    params,
    key,
  });
  if (answer.kind === "refused") return declineAsMisconfigured(deps, now, answer);
  const made = parseBody(answer, idSchema);
  const head = rows.head();
  if (made === null) {
    if (!mustStopRetrying(deps, now, answer)) return retryLater(deps, now, answer);
    // If Stripe created a customer despite the failed call, that customer stays unused.
    rows.setHead({ ...head, customers: Math.max(head.customers, customers + 1) });
    return storePurchase(deps, retryLater(deps, now, answer), { sent: null });
  }
  if (head.customer === null) {
    const customer = { id: made.id, isBooked: false };
    rows.setHead({ ...head, customer, customers: customers + 1 });
  }
  return storePurchase(deps, now, { sent: null, tries: 0 });
}

/** Moves to the method's first step. Waits while another purchase charges the saved card. */
function continueAfterCustomer(
  deps: PaymentDeps,
  purchase: Purchase,
  customerId: string,
): Purchase {
  const { rows, now } = deps;
  if (purchase.ending !== null) return endPurchase(deps, purchase, purchase.ending);
  if (purchase.method === "checkout") return moveToStep(deps, purchase, "session", { customerId });
  const { card } = rows.head();
  if (card === null) {
    return endPurchase(deps, purchase, declinedEnding("no_saved_card", true));
  }
  if (findRunningCharge(deps, purchase.id) !== null) {
    const tries = purchase.tries + 1;
    return storePurchase(deps, purchase, { tries, nextAt: now() + retryDelayMs(tries) });
  }
  const { paymentMethod, ...shown } = card;
  return moveToStep(deps, purchase, "invoice", { customerId, paymentMethod, card: shown });
}

/** Returns another purchase that is charging the saved card, or null. */
export function findRunningCharge({ rows }: PaymentDeps, id: string | null): Purchase | null {
  return rows.openPurchases().find((one) => one.id !== id && isRunningCharge(one)) ?? null;
}

const isRunningCharge = (one: Purchase): boolean => one.paymentMethod !== null && !isEnded(one);

export const createCheckoutStep: RunPurchaseStep = async (deps, purchase) => {
  const params = sessionParams(saleOf(deps, purchase));
  const call = { path: "/v1/checkout/sessions", params, key: purchase.id };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "refused") return handleRefusal(deps, now, answer);
  const made = parseBody(answer, sessionSchema);
  if (made !== null) {
    const { id: sessionId, url = null, expires_at } = made;
    const known = storePurchase(deps, now, { sessionId });
    if (known.ending !== null) return moveToStep(deps, known, "expire");
    return waitForCustomer(deps, known, { url, expiresAt: expires_at * 1000 });
  }
  if (!mustStopRetrying(deps, now, answer)) return retryLater(deps, now, answer);
  return recoverLostCheckout(deps, now);
};

/**
 * Continues with a checkout whose creation response was lost. If there is none, ends the purchase.
 */
export async function recoverLostCheckout(
  deps: PaymentDeps,
  purchase: Purchase,
): Promise<Purchase> {
  const found = await findStripeObject(deps, purchase, "checkout/sessions");
  const now = deps.rows.purchase(purchase.id) ?? purchase;
  if (found === undefined) return retryLater(deps, now);
  if (found !== null) return moveToStep(deps, now, "read", { sessionId: found });
  if (isEnded(now)) return storePurchase(deps, now, { step: null, nextAt: null });
  return endPurchase(deps, now, declinedEnding("processing_error"));
}

/**
 * Returns the ID of the purchase's object, null if Stripe doesn't have it, or undefined if Stripe
 * didn't respond.
 */
async function findStripeObject(
  { stripe }: PaymentDeps,
  { id, customerId, createdAt }: Purchase,
  what: "checkout/sessions" | "invoices",
): Promise<string | null | undefined> {
  const answer = await stripe.ask(listCreatedSince(what, customerId ?? "", createdAt));
  const list = parseBody(answer, objectListSchema);
  if (list === null) return undefined;
  const own = list.data.find(({ metadata }) => metadata?.["purchase_id"] === id);
  if (own !== undefined) return own.id;
  return list.has_more ? undefined : null;
}

export const createInvoiceStep: RunPurchaseStep = async (deps, purchase) => {
  const { paymentMethod } = purchase;
  const params = invoiceParams(saleOf(deps, purchase), paymentMethod ?? "");
  const call = { path: "/v1/invoices", params, key: idempotencyKeyOf(purchase) };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "refused") return handleRefusal(deps, now, answer);
  const made = parseBody(answer, idSchema);
  if (made !== null) return moveToStep(deps, now, "item", { invoiceId: made.id });
  if (!mustStopRetrying(deps, now, answer)) return retryLater(deps, now, answer);
  const found = await findStripeObject(deps, now, "invoices");
  const after = deps.rows.purchase(now.id) ?? now;
  if (found === undefined) return retryLater(deps, after, answer);
  return found === null
    ? restartStep(deps, after)
    : moveToStep(deps, after, "item", { invoiceId: found, anew: 1 });
};

export const addInvoiceItemStep: RunPurchaseStep = async (deps, purchase) => {
  const { invoiceId } = purchase;
  const params = itemParams(saleOf(deps, purchase), invoiceId ?? "");
  const call = { path: "/v1/invoiceitems", params, key: idempotencyKeyOf(purchase) };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "done") return moveToStep(deps, now, "finalize");
  if (answer.kind === "refused") return closeRefusedInvoice(deps, now, answer);
  if (!mustStopRetrying(deps, now, answer)) return retryLater(deps, now, answer);
  return continueWithInvoice(deps, now, (after, invoice) => {
    if (hasPurchaseAmount(after, invoice)) return moveToStep(deps, after, "finalize");
    return invoice.subtotal === 0
      ? restartStep(deps, after)
      : closeMismatchedInvoice(deps, after, invoice);
  });
};

export const finalizeInvoiceStep: RunPurchaseStep = async (deps, purchase) => {
  if (purchase.ending !== null) return moveToStep(deps, purchase, "read");
  const path = `/v1/invoices/${purchase.invoiceId}/finalize`;
  const call = { path, params: finalizeParams, key: idempotencyKeyOf(purchase) };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "done") {
    const invoice = parseBody(answer, invoiceSchema);
    if (invoice === null || !hasPurchaseAmount(now, invoice)) return moveToStep(deps, now, "read");
    return moveToStep(deps, now, "pay");
  }
  if (answer.kind === "unsure" && !mustStopRetrying(deps, now, answer)) {
    return retryLater(deps, now, answer);
  }
  return continueWithInvoice(deps, now, (after, invoice) => {
    if (invoice.status !== "draft") return moveToStep(deps, after, "read");
    return answer.kind === "refused"
      ? closeRefusedInvoice(deps, after, answer)
      : restartStep(deps, after);
  });
};

/** Charges the saved card. Never retries a declined charge. */
export const payInvoiceStep: RunPurchaseStep = async (deps, purchase) => {
  if (purchase.ending !== null) return moveToStep(deps, purchase, "read");
  const path = `/v1/invoices/${purchase.invoiceId}/pay`;
  const params = payParams(purchase.paymentMethod ?? "");
  const call = { path, params, key: `${purchase.id}:pay` };
  const { answer, now } = await sendStepCall(deps, purchase, call);
  if (answer.kind === "done") return moveToStep(deps, now, "read");
  if (answer.kind === "refused") {
    const ending = { state: "declined", ...declineReasonOf(answer.error) } as const;
    if (answer.error.code === "resource_missing") return endWithoutCard(deps, now);
    return moveToStep(deps, now, "read", { ending });
  }
  if (!mustStopRetrying(deps, now, answer)) return retryLater(deps, now, answer);
  return moveToStep(deps, now, "read", { ending: declinedEnding("processing_error") });
};

async function continueWithInvoice(
  deps: PaymentDeps,
  purchase: Purchase,
  goOn: (after: Purchase, invoice: Invoice) => Purchase,
): Promise<Purchase> {
  const answer = await deps.stripe.ask(readInvoice(purchase.invoiceId ?? ""));
  const after = deps.rows.purchase(purchase.id) ?? purchase;
  const invoice = parseBody(answer, invoiceSchema);
  return invoice === null ? retryLater(deps, after, answer) : goOn(after, invoice);
}

/** Handles a Stripe error: a deleted customer, a deleted card, or an invalid request from us. */
function handleRefusal(deps: PaymentDeps, purchase: Purchase, refusal: RefusedAnswer): Purchase {
  if (refusal.error.code !== "resource_missing") {
    return declineAsMisconfigured(deps, purchase, refusal);
  }
  if (refusal.error.param !== "customer") return endWithoutCard(deps, purchase);
  const { rows } = deps;
  const head = rows.head();
  if (head.customer?.id === purchase.customerId) {
    rows.setHead({ ...head, customer: null, card: null });
  }
  return endPurchase(deps, purchase, declinedEnding("customer_gone", true));
}

function endWithoutCard(deps: PaymentDeps, purchase: Purchase): Purchase {
  const { rows } = deps;
  const head = rows.head();
  if (head.card?.paymentMethod === purchase.paymentMethod) rows.setHead({ ...head, card: null });
  const ending = declinedEnding("card_removed", true);
  return purchase.invoiceId === null
    ? endPurchase(deps, purchase, ending)
    : moveToStep(deps, purchase, "read", { ending });
}

function closeRefusedInvoice(
  deps: PaymentDeps,
  purchase: Purchase,
  refusal: RefusedAnswer,
): Purchase {
  const isAddress = refusal.error.code === "customer_tax_location_invalid";
  const ending = declinedEnding(isAddress ? "address_incomplete" : "misconfigured", isAddress);
  return moveToStep(deps, purchase, "read", { ending });
}
