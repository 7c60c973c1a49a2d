import type { PurchaseError } from "../../shared/contracts/payments.ts";
import { logWarning, reasonOf } from "../../shared/log.ts";
import { declineOf, pauseMs } from "./payment-rules.ts";
import {
  restartStep,
  closeMismatched,
  endPurchase,
  declineAsMisconfigured,
  moveTo,
  retryLater,
  awaitCustomer,
  storePurchase,
} from "./purchase-moves.ts";
import { isOver } from "./purchase.ts";
import type { Purchase } from "./purchase.ts";
import {
  customerParams,
  finalizeParams,
  invoiceParams,
  isOfAmount,
  itemParams,
  listSince,
  payParams,
  post,
  readInvoice,
  sessionParams,
} from "./stripe-calls.ts";
import type { Selling } from "./stripe-calls.ts";
import { foundSchema, idSchema, invoiceSchema, sessionSchema } from "./stripe-objects.ts";
import type { Invoice } from "./stripe-objects.ts";
import { bodyOf } from "./stripe.ts";
import type { Params, StripeAnswer } from "./stripe.ts";
import type { PaymentDeps } from "./payment-deps.ts";

/** A step of a purchase, with at most one Stripe call that changes something. */
export type RunStep = (world: PaymentDeps, purchase: Purchase) => Promise<Purchase>;

const FAULTS_STORED = 3;
/**
 * Ms in which a call is retried: less than Stripe stores its idempotency key. For a checkout it is
 * shorter, because Stripe rejects a checkout that expires within half an hour.
 */
const KEY_MS = 23 * 3_600_000;
const SESSION_KEY_MS = 25 * 60_000;

/** Sends the Stripe call of a step. Retries send the same bytes. */
async function send(
  world: PaymentDeps,
  purchase: Purchase,
  call: { readonly path: string; readonly params: Params; readonly key: string },
): Promise<{ readonly answer: StripeAnswer; readonly now: Purchase }> {
  const { id, step, state } = purchase;
  const { path, params, key } = call;
  const first = { step: step ?? "read", ...post(path, params, key), key, firstAt: world.now() };
  const { method: _method, ...made } = first;
  const sent = purchase.sent?.step === step ? purchase.sent : { ...made, body: made.body ?? "" };
  storePurchase(world, purchase, { sent, state: isOver(purchase) ? state : "asked" });
  const answer = await world.stripe.ask({ ...sent, method: "POST" });
  const now = world.rows.purchase(id) ?? purchase;
  return {
    answer,
    now:
      answer.requestId === null ? now : storePurchase(world, now, { requestId: answer.requestId }),
  };
}

/**
 * Reports whether to search for the object that a call may have created, instead of retrying the
 * call.
 */
function mustLook({ now }: PaymentDeps, { sent, tries }: Purchase, answer: StripeAnswer): boolean {
  if (answer.kind !== "unsure") return false;
  const limit = sent?.step === "session" ? SESSION_KEY_MS : KEY_MS;
  const isFault = answer.status !== null && answer.status >= 500 && tries >= FAULTS_STORED;
  return answer.isStored || isFault || now() - (sent?.firstAt ?? now()) > limit;
}

const keyOf = ({ id, step, anew: again }: Purchase): string =>
  again === 0 ? `${id}:${step}` : `${id}:${step}:${again + 1}`;

function sellingOf(world: PaymentDeps, purchase: Purchase): Selling {
  const { region, hasTax, taxCode, rows } = world;
  const { id, method, amountMicro, saveCard, createdAt, returnUrl, customerId } = purchase;
  const row = { id, method, amountMicro, saveCard, createdAt, returnUrl };
  return {
    ...row,
    orgId: rows.head().orgId,
    region,
    customerId: customerId ?? "",
    hasTax,
    taxCode,
  };
}

/** Creates the Stripe customer once, and stores it before its first use. */
export const customerStep: RunStep = async (world, purchase) => {
  const { rows, book } = world;
  const head = rows.head();
  if (head.customer === null) {
    return purchase.ending === null
      ? makeCustomer(world, purchase)
      : endPurchase(world, purchase, purchase.ending);
  }
  const { id, isBooked } = head.customer;
  if (!isBooked) {
    try {
      await book.addCustomer(id, head.orgId);
    } catch (error) {
      logWarning("customer_not_booked", { org_id: head.orgId, reason: reasonOf(error) });
      return retryLater(world, rows.purchase(purchase.id) ?? purchase);
    }
    const after = rows.head();
    if (after.customer?.id === id) rows.setHead({ ...after, customer: { id, isBooked: true } });
  }
  return begin(world, rows.purchase(purchase.id) ?? purchase, id);
};

async function makeCustomer(world: PaymentDeps, purchase: Purchase): Promise<Purchase> {
  const { rows, region } = world;
  const { orgId, orgName, customers } = rows.head();
  const key = customers === 0 ? `cus:${orgId}` : `cus:${orgId}:${customers + 1}`;
  const params = customerParams({ orgId, orgName, region });
  const { answer, now } = await send(world, purchase, { path: "/v1/customers", params, key });
  if (answer.kind === "refused") return declineAsMisconfigured(world, now, answer);
  const made = bodyOf(answer, idSchema);
  const head = rows.head();
  if (made === null) {
    if (!mustLook(world, now, answer)) return retryLater(world, now, answer);
    // If Stripe created a customer, it isn't stored and never pays, so it is harmless.
    rows.setHead({ ...head, customers: Math.max(head.customers, customers + 1) });
    return storePurchase(world, retryLater(world, now, answer), { sent: null });
  }
  if (head.customer === null) {
    const customer = { id: made.id, isBooked: false };
    rows.setHead({ ...head, customer, customers: customers + 1 });
  }
  return storePurchase(world, now, { sent: null, tries: 0 });
}

/** Starts the purchase's first step. A saved card is charged for one purchase at a time. */
function begin(world: PaymentDeps, purchase: Purchase, customerId: string): Purchase {
  const { rows, now } = world;
  if (purchase.ending !== null) return endPurchase(world, purchase, purchase.ending);
  if (purchase.method === "checkout") return moveTo(world, purchase, "session", { customerId });
  const { card } = rows.head();
  if (card === null) {
    return endPurchase(world, purchase, {
      state: "declined",
      error: "no_saved_card",
      isHard: true,
    });
  }
  if (findRunningCharge(world, purchase.id) !== null) {
    const tries = purchase.tries + 1;
    return storePurchase(world, purchase, { tries, nextAt: now() + pauseMs(tries) });
  }
  const { paymentMethod, ...shown } = card;
  return moveTo(world, purchase, "invoice", { customerId, paymentMethod, card: shown });
}

export function findRunningCharge({ rows }: PaymentDeps, id: string | null): Purchase | null {
  return rows.open().find((one) => one.id !== id && isCharged(one)) ?? null;
}

const isCharged = (one: Purchase): boolean => one.paymentMethod !== null && !isOver(one);

export const sessionStep: RunStep = async (world, purchase) => {
  const params = sessionParams(sellingOf(world, purchase));
  const call = { path: "/v1/checkout/sessions", params, key: purchase.id };
  const { answer, now } = await send(world, purchase, call);
  if (answer.kind === "refused") return refusedByCustomer(world, now, answer);
  const made = bodyOf(answer, sessionSchema);
  if (made !== null) {
    const { id: sessionId, url = null, expires_at } = made;
    const known = storePurchase(world, now, { sessionId });
    if (known.ending !== null) return moveTo(world, known, "expire");
    return awaitCustomer(world, known, { url, expiresAt: expires_at * 1000 });
  }
  if (!mustLook(world, now, answer)) return retryLater(world, now, answer);
  return findLostSession(world, now);
};

/** Searches Stripe for a checkout if the response to its creation was lost. */
export async function findLostSession(world: PaymentDeps, purchase: Purchase): Promise<Purchase> {
  const found = await lookFor(world, purchase, "checkout/sessions");
  const now = world.rows.purchase(purchase.id) ?? purchase;
  if (found === undefined) return retryLater(world, now);
  if (found !== null) return moveTo(world, now, "read", { sessionId: found });
  if (isOver(now)) return storePurchase(world, now, { step: null, nextAt: null });
  return endPurchase(world, now, { state: "declined", error: "processing_error", isHard: false });
}

/** Returns the object found, null if there is none, or undefined if Stripe didn't respond. */
async function lookFor(
  { stripe }: PaymentDeps,
  { id, customerId, createdAt }: Purchase,
  what: "checkout/sessions" | "invoices",
): Promise<string | null | undefined> {
  const answer = await stripe.ask(listSince(what, customerId ?? "", createdAt));
  const list = bodyOf(answer, foundSchema);
  if (list === null) return undefined;
  const own = list.data.find(({ metadata }) => metadata?.["purchase_id"] === id);
  if (own !== undefined) return own.id;
  return list.has_more ? undefined : null;
}

export const invoiceStep: RunStep = async (world, purchase) => {
  const { paymentMethod } = purchase;
  const params = invoiceParams(sellingOf(world, purchase), paymentMethod ?? "");
  const call = { path: "/v1/invoices", params, key: keyOf(purchase) };
  const { answer, now } = await send(world, purchase, call);
  if (answer.kind === "refused") return refusedByCustomer(world, now, answer);
  const made = bodyOf(answer, idSchema);
  if (made !== null) return moveTo(world, now, "item", { invoiceId: made.id });
  if (!mustLook(world, now, answer)) return retryLater(world, now, answer);
  const found = await lookFor(world, now, "invoices");
  const after = world.rows.purchase(now.id) ?? now;
  if (found === undefined) return retryLater(world, after, answer);
  return found === null
    ? restartStep(world, after)
    : moveTo(world, after, "item", { invoiceId: found, anew: 1 });
};

export const itemStep: RunStep = async (world, purchase) => {
  const { invoiceId } = purchase;
  const params = itemParams(sellingOf(world, purchase), invoiceId ?? "");
  const call = { path: "/v1/invoiceitems", params, key: keyOf(purchase) };
  const { answer, now } = await send(world, purchase, call);
  if (answer.kind === "done") return moveTo(world, now, "finalize");
  if (answer.kind === "refused") return closeRefused(world, now, answer);
  if (!mustLook(world, now, answer)) return retryLater(world, now, answer);
  return byInvoice(world, now, (after, invoice) => {
    if (isOfAmount(after, invoice)) return moveTo(world, after, "finalize");
    return invoice.subtotal === 0
      ? restartStep(world, after)
      : closeMismatched(world, after, invoice);
  });
};

export const finalizeStep: RunStep = async (world, purchase) => {
  if (purchase.ending !== null) return moveTo(world, purchase, "read");
  const path = `/v1/invoices/${purchase.invoiceId}/finalize`;
  const call = { path, params: finalizeParams, key: keyOf(purchase) };
  const { answer, now } = await send(world, purchase, call);
  if (answer.kind === "done") {
    const invoice = bodyOf(answer, invoiceSchema);
    if (invoice === null || !isOfAmount(now, invoice)) return moveTo(world, now, "read");
    return moveTo(world, now, "pay");
  }
  if (answer.kind === "unsure" && !mustLook(world, now, answer)) {
    return retryLater(world, now, answer);
  }
  return byInvoice(world, now, (after, invoice) => {
    if (invoice.status !== "draft") return moveTo(world, after, "read");
    return answer.kind === "refused"
      ? closeRefused(world, after, answer)
      : restartStep(world, after);
  });
};

/** Charges the saved card. Never retries a declined charge. */
export const payStep: RunStep = async (world, purchase) => {
  if (purchase.ending !== null) return moveTo(world, purchase, "read");
  const path = `/v1/invoices/${purchase.invoiceId}/pay`;
  const params = payParams(purchase.paymentMethod ?? "");
  const call = { path, params, key: `${purchase.id}:pay` };
  const { answer, now } = await send(world, purchase, call);
  if (answer.kind === "done") return moveTo(world, now, "read");
  if (answer.kind === "refused") {
    const ending = { state: "declined", ...declineOf(answer.error) } as const;
    if (answer.error.code === "resource_missing") return forgetCard(world, now);
    return moveTo(world, now, "read", { ending });
  }
  if (!mustLook(world, now, answer)) return retryLater(world, now, answer);
  const ending = { state: "declined", error: "processing_error", isHard: false } as const;
  return moveTo(world, now, "read", { ending });
};

async function byInvoice(
  world: PaymentDeps,
  purchase: Purchase,
  goOn: (after: Purchase, invoice: Invoice) => Purchase,
): Promise<Purchase> {
  const answer = await world.stripe.ask(readInvoice(purchase.invoiceId ?? ""));
  const after = world.rows.purchase(purchase.id) ?? purchase;
  const invoice = bodyOf(answer, invoiceSchema);
  return invoice === null ? retryLater(world, after, answer) : goOn(after, invoice);
}

type Refused = Extract<StripeAnswer, { kind: "refused" }>;

/** Handles a Stripe error about a deleted customer or card, or about our invalid request. */
function refusedByCustomer(world: PaymentDeps, purchase: Purchase, refusal: Refused): Purchase {
  if (refusal.error.code !== "resource_missing") {
    return declineAsMisconfigured(world, purchase, refusal);
  }
  if (refusal.error.param !== "customer") return forgetCard(world, purchase);
  const { rows } = world;
  const head = rows.head();
  if (head.customer?.id === purchase.customerId) {
    rows.setHead({ ...head, customer: null, card: null });
  }
  return endPurchase(world, purchase, { state: "declined", error: "customer_gone", isHard: true });
}

function forgetCard(world: PaymentDeps, purchase: Purchase): Purchase {
  const { rows } = world;
  const head = rows.head();
  if (head.card?.paymentMethod === purchase.paymentMethod) rows.setHead({ ...head, card: null });
  const ending = { state: "declined", error: "card_removed", isHard: true } as const;
  return purchase.invoiceId === null
    ? endPurchase(world, purchase, ending)
    : moveTo(world, purchase, "read", { ending });
}

function closeRefused(world: PaymentDeps, purchase: Purchase, refusal: Refused): Purchase {
  const isAddress = refusal.error.code === "customer_tax_location_invalid";
  const error: PurchaseError = isAddress ? "address_incomplete" : "misconfigured";
  return moveTo(world, purchase, "read", {
    ending: { state: "declined", error, isHard: isAddress },
  });
}
