import { logAlert } from "../../shared/log.ts";
import { callWallet } from "./crediting.ts";
import { moveTo } from "./purchase-moves.ts";
import type { Purchase, WaitingHint } from "./purchase.ts";
import { readIntent, readInvoice, readInvoicePayments, readSession } from "./stripe-calls.ts";
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
  readonly readBack: (paymentId: string) => Promise<boolean>;
};

/**
 * Reads from Stripe the objects that a hint (the IDs in a webhook event) names, because hints
 * aren't trusted. Returns false to retry.
 */
export async function processHint(
  world: PaymentDeps,
  looking: Looking,
  hint: WaitingHint,
): Promise<boolean> {
  const { kind, object } = hint;
  switch (kind) {
    case "session":
    case "invoice":
      return lookAtPurchase(looking, await ofObject(world, kind, object));
    case "intent":
      return lookAtIntent(world, looking, object);
    case "back":
      return lookAtBack(world, looking, object);
    case "warning": {
      logAlert("early_fraud_warning", { org_id: hint.orgId, payment_id: object });
      const notified = await callWallet(() => world.wallet.disableTopUp("fraud_warning"));
      return notified?.ok === true;
    }
    case "detached":
      return forgetCard(world, object);
  }
}

type Found = Purchase | "none" | "unsure";

const unread = (answer: StripeAnswer): "none" | "unsure" =>
  answer.kind === "done" ? "none" : "unsure";

async function lookAtPurchase(looking: Looking, found: Found): Promise<boolean> {
  if (typeof found === "string") return found === "none";
  await looking.lookAt(found.id); // its row stores the remaining work
  return true;
}

async function lookAtIntent(world: PaymentDeps, looking: Looking, id: string): Promise<boolean> {
  if (world.rows.payment(id)?.isCredited === true) return true;
  const found = await ofIntent(world, id);
  if (found === "none") logAlert("payment_unknown", { payment_id: id });
  return lookAtPurchase(looking, found);
}

async function lookAtBack(world: PaymentDeps, looking: Looking, id: string): Promise<boolean> {
  if (world.rows.payment(id)?.isCredited !== true) {
    const found = await ofIntent(world, id);
    if (found === "none") return true;
    if (found === "unsure") return false;
    await looking.lookAt(found.id);
  }
  return looking.readBack(id);
}

/**
 * Finds the purchase of a Stripe object by the object's ID or, if the response to its creation was
 * lost, by our metadata.
 */
async function ofObject(
  world: PaymentDeps,
  kind: "session" | "invoice",
  id: string,
): Promise<Found> {
  const known = world.rows.purchaseOf(id);
  if (known !== null) return known;
  const answer = await world.stripe.ask(kind === "session" ? readSession(id) : readInvoice(id));
  if (answer.kind === "refused") return "none";
  const object = kind === "session" ? bodyOf(answer, sessionSchema) : bodyOf(answer, invoiceSchema);
  if (object === null) return unread(answer);
  const purchase = named(world, object);
  if (typeof purchase === "string") return purchase;
  return adopt(world, purchase, kind === "session" ? { sessionId: id } : { invoiceId: id });
}

/**
 * Returns the purchase that an object's metadata names. The customer must match too, because
 * metadata isn't trusted.
 */
function named(
  world: PaymentDeps,
  object: Pick<Intent, "metadata" | "customer">,
): Purchase | "none" {
  const purchase = world.rows.purchase(object.metadata?.["purchase_id"] ?? "");
  return purchase === null || purchase.customerId !== object.customer ? "none" : purchase;
}

/**
 * Stores an invoice's or session's ID if Stripe's response to its creation was lost. A checkout
 * purchase needs only its session.
 */
function adopt(
  world: PaymentDeps,
  purchase: Purchase,
  object: { readonly sessionId: string } | { readonly invoiceId: string },
): Found {
  const isCheckouts = purchase.method === "checkout";
  if ("invoiceId" in object && (isCheckouts || purchase.invoiceId !== null)) return purchase;
  if ("sessionId" in object && (!isCheckouts || purchase.sessionId !== null)) return purchase;
  return moveTo(world, purchase, "read", object);
}

async function ofIntent(world: PaymentDeps, id: string): Promise<Found> {
  const { rows, stripe } = world;
  const known = rows.purchaseOf(id);
  if (known !== null) return known;
  const answer = await stripe.ask(readIntent(id));
  if (answer.kind === "refused") return "none";
  const intent = bodyOf(answer, intentSchema);
  if (intent === null) return unread(answer);
  // A payment created from an invoice doesn't have our metadata.
  return intent.metadata?.["purchase_id"] === undefined
    ? ofInvoiceOf(world, id)
    : named(world, intent);
}

async function ofInvoiceOf(world: PaymentDeps, paymentId: string): Promise<Found> {
  const answer = await world.stripe.ask(readInvoicePayments(paymentId));
  if (answer.kind === "refused") return "none";
  const list = bodyOf(answer, invoicePaymentsSchema);
  if (list === null) return unread(answer);
  const invoiceId = list.data[0]?.invoice;
  return typeof invoiceId === "string" ? ofObject(world, "invoice", invoiceId) : "none";
}

async function forgetCard(world: PaymentDeps, paymentMethod: string): Promise<boolean> {
  const head = world.rows.head();
  if (head.card?.paymentMethod !== paymentMethod) return true;
  const notified = await callWallet(() => world.wallet.disableTopUp("card_removed"));
  if (notified?.ok !== true) return false;
  const after = world.rows.head();
  if (after.card?.paymentMethod === paymentMethod) world.rows.setHead({ ...after, card: null });
  return true;
}
