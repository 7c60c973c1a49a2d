import { logAlert } from "../../shared/log.ts";
import { callWallet } from "./crediting.ts";
import { moveToStep } from "./purchase-moves.ts";
import type { Purchase, WaitingHint } from "./purchase.ts";
import {
  readPaymentIntent,
  readInvoice,
  readInvoicePayments,
  readSession,
} from "./stripe-calls.ts";
import {
  intentSchema,
  invoicePaymentsSchema,
  invoiceSchema,
  sessionSchema,
} from "./stripe-objects.ts";
import type { Intent } from "./stripe-objects.ts";
import { bodyOf } from "./stripe.ts";
import type { StripeAnswer } from "./stripe.ts";
import type { PaymentDeps } from "./payment-deps.ts";

type Looking = {
  readonly lookAt: (purchaseId: string) => Promise<void>;
  readonly applyRefunds: (paymentId: string) => Promise<boolean>;
};

/**
 * Processes a hint (a stored Stripe event). Reads the object from Stripe, because events aren't
 * trusted. Returns false if the caller must retry.
 */
export async function processHint(
  deps: PaymentDeps,
  looking: Looking,
  hint: WaitingHint,
): Promise<boolean> {
  const { kind, object } = hint;
  switch (kind) {
    case "session":
    case "invoice":
      return lookAtPurchase(looking, await ofObject(deps, kind, object));
    case "intent":
      return lookAtIntent(deps, looking, object);
    case "back":
      return lookAtBack(deps, looking, object);
    case "warning": {
      logAlert("early_fraud_warning", { org_id: hint.orgId, payment_id: object });
      const notified = await callWallet(() => deps.wallet.disableTopUp("fraud_warning"));
      return notified?.ok === true;
    }
    case "detached":
      return forgetCard(deps, object);
  }
}

type Found = Purchase | "none" | "unsure";

const unread = (answer: StripeAnswer): "none" | "unsure" =>
  answer.kind === "done" ? "none" : "unsure";

async function lookAtPurchase(looking: Looking, found: Found): Promise<boolean> {
  if (typeof found === "string") return found === "none";
  await looking.lookAt(found.id);
  return true;
}

async function lookAtIntent(deps: PaymentDeps, looking: Looking, id: string): Promise<boolean> {
  if (deps.rows.payment(id)?.isCredited === true) return true;
  const found = await ofIntent(deps, id);
  if (found === "none") logAlert("payment_unknown", { payment_id: id });
  return lookAtPurchase(looking, found);
}

async function lookAtBack(deps: PaymentDeps, looking: Looking, id: string): Promise<boolean> {
  if (deps.rows.payment(id)?.isCredited !== true) {
    const found = await ofIntent(deps, id);
    if (found === "none") return true;
    if (found === "unsure") return false;
    await looking.lookAt(found.id);
  }
  return looking.applyRefunds(id);
}

/**
 * Finds the purchase of a Stripe object by the object's ID. If the response that created the object
 * was lost, finds the purchase by metadata.
 */
async function ofObject(
  deps: PaymentDeps,
  kind: "session" | "invoice",
  id: string,
): Promise<Found> {
  const known = deps.rows.purchaseOf(id);
  if (known !== null) return known;
  const answer = await deps.stripe.ask(kind === "session" ? readSession(id) : readInvoice(id));
  if (answer.kind === "refused") return "none";
  const object = kind === "session" ? bodyOf(answer, sessionSchema) : bodyOf(answer, invoiceSchema);
  if (object === null) return unread(answer);
  const purchase = named(deps, object);
  if (typeof purchase === "string") return purchase;
  return adopt(deps, purchase, kind === "session" ? { sessionId: id } : { invoiceId: id });
}

/** Finds a purchase by metadata. The customer must match too, because metadata isn't trusted. */
function named(
  deps: PaymentDeps,
  object: Pick<Intent, "metadata" | "customer">,
): Purchase | "none" {
  const purchase = deps.rows.purchase(object.metadata?.["purchase_id"] ?? "");
  return purchase === null || purchase.customerId !== object.customer ? "none" : purchase;
}

/**
 * Stores the ID of an invoice or session if the response that created it was lost. A checkout needs
 * only the ID of its session.
 */
function adopt(
  deps: PaymentDeps,
  purchase: Purchase,
  object: { readonly sessionId: string } | { readonly invoiceId: string },
): Found {
  const isCheckouts = purchase.method === "checkout";
  if ("invoiceId" in object && (isCheckouts || purchase.invoiceId !== null)) return purchase;
  if ("sessionId" in object && (!isCheckouts || purchase.sessionId !== null)) return purchase;
  return moveToStep(deps, purchase, "read", object);
}

async function ofIntent(deps: PaymentDeps, id: string): Promise<Found> {
  const { rows, stripe } = deps;
  const known = rows.purchaseOf(id);
  if (known !== null) return known;
  const answer = await stripe.ask(readPaymentIntent(id));
  if (answer.kind === "refused") return "none";
  const intent = bodyOf(answer, intentSchema);
  if (intent === null) return unread(answer);
  // A payment created from an invoice doesn't have our metadata.
  return intent.metadata?.["purchase_id"] === undefined
    ? ofInvoiceOf(deps, id)
    : named(deps, intent);
}

async function ofInvoiceOf(deps: PaymentDeps, paymentId: string): Promise<Found> {
  const answer = await deps.stripe.ask(readInvoicePayments(paymentId));
  if (answer.kind === "refused") return "none";
  const list = bodyOf(answer, invoicePaymentsSchema);
  if (list === null) return unread(answer);
  const invoiceId = list.data[0]?.invoice;
  return typeof invoiceId === "string" ? ofObject(deps, "invoice", invoiceId) : "none";
}

async function forgetCard(deps: PaymentDeps, paymentMethod: string): Promise<boolean> {
  const head = deps.rows.head();
  if (head.card?.paymentMethod !== paymentMethod) return true;
  const notified = await callWallet(() => deps.wallet.disableTopUp("card_removed"));
  if (notified?.ok !== true) return false;
  const after = deps.rows.head();
  if (after.card?.paymentMethod === paymentMethod) deps.rows.setHead({ ...after, card: null });
  return true;
}
