import { logAlert } from "../../shared/log.ts";
import { tryWalletCall } from "./crediting.ts";
import { moveToPurchaseStep } from "./purchase-transitions.ts";
import type { Purchase, PendingStripeHint, PaymentDeps } from "./purchase.ts";
import {
  buildReadPaymentIntentCall,
  buildReadInvoiceCall,
  buildListInvoicePaymentsCall,
  buildReadCheckoutSessionCall,
} from "./stripe-calls.ts";
import {
  paymentIntentSchema,
  invoicePaymentsSchema,
  invoiceSchema,
  checkoutSessionSchema,
} from "./stripe-objects.ts";
import type { StripePaymentIntent } from "./stripe-objects.ts";
import { readStripeObject } from "./stripe.ts";

type HintActions = {
  readonly refreshPurchase: (purchaseId: string) => Promise<void>;
  readonly applyRefunds: (paymentId: string) => Promise<boolean>;
};

/**
 * Processes a hint. Reads its Stripe object again, because events aren't trusted. Returns false if
 * the caller must retry.
 */
export async function processStripeHint(
  deps: PaymentDeps,
  looking: HintActions,
  hint: PendingStripeHint,
): Promise<boolean> {
  const { kind, object } = hint;
  switch (kind) {
    case "session":
    case "invoice":
      return refreshFound(looking, await findByObject(deps, kind, object));
    case "intent":
      return processIntentHint(deps, looking, object);
    case "back":
      return processRefundHint(deps, looking, object);
    case "warning": {
      logAlert("early_fraud_warning", { org_id: hint.orgId, payment_id: object });
      const notified = await tryWalletCall(() => deps.wallet.disableTopUp("fraud_warning"));
      return notified?.ok === true;
    }
    case "detached":
      return forgetDetachedCard(deps, object);
  }
}

type PurchaseLookup = Purchase | "none" | "unsure";

async function refreshFound(looking: HintActions, found: PurchaseLookup): Promise<boolean> {
  if (typeof found === "string") return found === "none";
  await looking.refreshPurchase(found.id);
  return true;
}

async function processIntentHint(
  deps: PaymentDeps,
  looking: HintActions,
  id: string,
): Promise<boolean> {
  if (deps.rows.payment(id)?.isCredited === true) return true;
  const found = await findByIntent(deps, id);
  if (found === "none") logAlert("payment_unknown", { payment_id: id });
  return refreshFound(looking, found);
}

async function processRefundHint(
  deps: PaymentDeps,
  looking: HintActions,
  id: string,
): Promise<boolean> {
  if (deps.rows.payment(id)?.isCredited !== true) {
    const found = await findByIntent(deps, id);
    if (found === "none") return true;
    if (found === "unsure") return false;
    await looking.refreshPurchase(found.id);
  }
  return looking.applyRefunds(id);
}

/**
 * Finds the purchase of a Stripe object by ID or, if the response with the ID was lost, by
 * metadata.
 */
async function findByObject(
  deps: PaymentDeps,
  kind: "session" | "invoice",
  id: string,
): Promise<PurchaseLookup> {
  const known = deps.rows.purchaseByStripeId(id);
  if (known !== null) return known;
  const object =
    kind === "session"
      ? await readStripeObject(deps.stripe, buildReadCheckoutSessionCall(id), checkoutSessionSchema)
      : await readStripeObject(deps.stripe, buildReadInvoiceCall(id), invoiceSchema);
  if (typeof object === "string") return object;
  const purchase = findByMetadata(deps, object);
  if (typeof purchase === "string") return purchase;
  return storeLostId(deps, purchase, kind === "session" ? { sessionId: id } : { invoiceId: id });
}

/** Finds a purchase by metadata. Also checks the customer, because metadata isn't trusted. */
function findByMetadata(
  deps: PaymentDeps,
  object: Pick<StripePaymentIntent, "metadata" | "customer">,
): Purchase | "none" {
  const purchase = deps.rows.purchase(object.metadata?.["purchase_id"] ?? "");
  return purchase === null || purchase.customerId !== object.customer ? "none" : purchase;
}

/** Stores the ID of a Stripe invoice or session whose creation response was lost. */
function storeLostId(
  deps: PaymentDeps,
  purchase: Purchase,
  object: { readonly sessionId: string } | { readonly invoiceId: string },
): PurchaseLookup {
  const isCheckout = purchase.method === "checkout";
  if ("invoiceId" in object && (isCheckout || purchase.invoiceId !== null)) return purchase;
  if ("sessionId" in object && (!isCheckout || purchase.sessionId !== null)) return purchase;
  return moveToPurchaseStep(deps, purchase, "read", object);
}

async function findByIntent(deps: PaymentDeps, id: string): Promise<PurchaseLookup> {
  const { rows, stripe } = deps;
  const known = rows.purchaseByStripeId(id);
  if (known !== null) return known;
  const intent = await readStripeObject(
    stripe,
    buildReadPaymentIntentCall(id),
    paymentIntentSchema,
  );
  if (typeof intent === "string") return intent;
  // A payment created from an invoice lacks our metadata.
  return intent.metadata?.["purchase_id"] === undefined
    ? findByInvoicePayment(deps, id)
    : findByMetadata(deps, intent);
}

async function findByInvoicePayment(deps: PaymentDeps, paymentId: string): Promise<PurchaseLookup> {
  const call = buildListInvoicePaymentsCall(paymentId);
  const list = await readStripeObject(deps.stripe, call, invoicePaymentsSchema);
  if (typeof list === "string") return list;
  const invoiceId = list.data[0]?.invoice;
  return typeof invoiceId === "string" ? findByObject(deps, "invoice", invoiceId) : "none";
}

async function forgetDetachedCard(deps: PaymentDeps, paymentMethod: string): Promise<boolean> {
  const head = deps.rows.head();
  if (head.card?.paymentMethod !== paymentMethod) return true;
  const notified = await tryWalletCall(() => deps.wallet.disableTopUp("card_removed"));
  if (notified?.ok !== true) return false;
  const after = deps.rows.head();
  if (after.card?.paymentMethod === paymentMethod) deps.rows.setHead({ ...after, card: null });
  return true;
}
