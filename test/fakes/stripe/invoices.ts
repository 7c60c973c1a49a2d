import { requireApproval, capture, decline, declineOf, newCard, newIntent } from "./charging.ts";
import type {
  Intent,
  Invoice,
  InvoiceItem,
  InvoicePayment,
  PaymentMethod,
  Session,
  SessionTerms,
} from "./objects.ts";
import type { Params } from "./params.ts";
import { badParameter, cardError, missing, wrongState } from "./stripe-error.ts";
import { found, liveCustomer, taxOf } from "./state.ts";
import type { StripeState } from "./state.ts";

const INVOICE_FIELDS = [
  "customer",
  "currency",
  "collection_method",
  "auto_advance",
  "pending_invoice_items_behavior",
  "automatic_tax[enabled]",
  "default_payment_method",
  "payment_settings[payment_method_types][]",
  "description",
  "footer",
  "metadata[*]",
] as const;
const ITEM_FIELDS = [
  "customer",
  "invoice",
  "amount",
  "currency",
  "tax_behavior",
  "tax_code",
  "description",
  "metadata[*]",
] as const;

/** `POST /v1/invoices`: creates a draft. */
export function createInvoice(world: StripeState, params: Params): Invoice {
  params.allowOnly(INVOICE_FIELDS);
  const customer = liveCustomer(world, params.required("customer"));
  params.oneOf("pending_invoice_items_behavior", ["exclude", "include"]);
  if (
    params.oneOf("collection_method", ["charge_automatically", "send_invoice"]) === "send_invoice"
  ) {
    throw badParameter(
      "Missing required param: days_until_due.",
      "days_until_due",
      "parameter_missing",
    );
  }
  const invoice = draft(world, customer.id);
  invoice.auto_advance = params.flag("auto_advance") ?? false;
  invoice.automatic_tax.enabled = params.flag("automatic_tax[enabled]") ?? false;
  invoice.default_payment_method = methodOf(world, params, "default_payment_method", customer.id);
  invoice.metadata = params.metadata("metadata");
  world.invoices.set(invoice.id, invoice);
  world.emit("invoice.created", invoice);
  return invoice;
}

function draft(world: StripeState, customer: string): Invoice {
  return {
    id: world.id("in"),
    object: "invoice",
    created: world.seconds(),
    livemode: false,
    amount_due: 0,
    amount_paid: 0,
    amount_remaining: 0,
    attempt_count: 0,
    attempted: false,
    auto_advance: false,
    automatic_tax: { enabled: false },
    collection_method: "charge_automatically",
    currency: "usd",
    customer,
    default_payment_method: null,
    hosted_invoice_url: null,
    invoice_pdf: null,
    metadata: {},
    number: null,
    status: "draft",
    subtotal: 0,
    total: 0,
    total_excluding_tax: 0,
    total_taxes: [],
  };
}

/** Returns a saved card of the customer. Throws for other cards. */
function methodOf(
  world: StripeState,
  params: Params,
  name: string,
  customer: string,
): string | null {
  const id = params.text(name);
  if (id === null) return null;
  const method = world.methods.get(id);
  if (method === undefined) throw missing(id, name);
  if (method.customer === customer) return id;
  throw badParameter(
    `The payment method ${id} does not belong to the Customer ${customer}. Please use this payment method with the Customer that it belongs to instead.`,
    name,
  );
}

/** `POST /v1/invoiceitems`: adds a line to a draft. */
export function createItem(world: StripeState, params: Params): InvoiceItem {
  params.allowOnly(ITEM_FIELDS);
  const customer = liveCustomer(world, params.required("customer"));
  const id = params.required("invoice");
  const invoice = world.invoices.get(id);
  if (invoice === undefined || invoice.customer !== customer.id) throw missing(id, "invoice");
  if (invoice.status !== "draft") {
    throw wrongState("Invoice items can only be added to draft invoices.", "invoice_not_editable");
  }
  if (params.required("currency") !== invoice.currency) {
    throw badParameter("The currency of the item must be the invoice's.", "currency");
  }
  const item: InvoiceItem = {
    id: world.id("ii"),
    object: "invoiceitem",
    date: world.seconds(),
    livemode: false,
    amount: params.amount("amount"),
    currency: "usd",
    customer: customer.id,
    description: params.text("description"),
    invoice: id,
  };
  const isInclusive = params.oneOf("tax_behavior", ["exclusive", "inclusive"]) === "inclusive";
  world.items.set(item.id, item);
  addLine(world, invoice, item.amount, isInclusive);
  return item;
}

function addLine(world: StripeState, invoice: Invoice, cents: number, isInclusive: boolean): void {
  const tax = invoice.automatic_tax.enabled ? taxOf(world, cents, isInclusive) : 0;
  invoice.subtotal += cents;
  invoice.total += cents + (isInclusive ? 0 : tax);
  invoice.total_excluding_tax += isInclusive ? cents - tax : cents;
  if (tax > 0) {
    invoice.total_taxes.push({
      amount: tax,
      tax_behavior: isInclusive ? "inclusive" : "exclusive",
    });
  }
  invoice.amount_due = invoice.total;
  invoice.amount_remaining = invoice.total;
}

/** `POST /v1/invoices/{id}/finalize`: fixes the amount and creates a payment. */
export function finalizeInvoice(world: StripeState, id: string, params: Params): Invoice {
  params.allowOnly(["auto_advance"]);
  const invoice = found(world.invoices, id, "invoice");
  if (invoice.status !== "draft") {
    throw wrongState(
      "This invoice is already finalized, you can't re-finalize a non-draft invoice.",
      "invoice_not_editable",
    );
  }
  const customer = liveCustomer(world, invoice.customer);
  if (invoice.automatic_tax.enabled && customer.address === null) {
    throw wrongState(
      "The customer's location isn't recognized. Set a valid customer address in order to automatically calculate tax.",
      "customer_tax_location_invalid",
    );
  }
  invoice.auto_advance = params.flag("auto_advance") ?? invoice.auto_advance;
  open(world, invoice);
  const intent = newIntent(world, {
    amount: invoice.total,
    customer: invoice.customer,
    metadata: {},
    setup_future_usage: null,
  });
  const payment = paymentOf(world, invoice, intent);
  world.invoicePayments.set(payment.id, payment);
  world.emit("invoice.finalized", invoice);
  return invoice;
}

function open(world: StripeState, invoice: Invoice): void {
  invoice.status = "open";
  invoice.number = `TP-${world.invoices.size.toString().padStart(4, "0")}`;
  invoice.hosted_invoice_url = `${world.pages}/i/${invoice.id}`;
  invoice.invoice_pdf = `${world.pages}/i/${invoice.id}/pdf`;
}

function paymentOf(world: StripeState, invoice: Invoice, intent: Intent): InvoicePayment {
  return {
    id: world.id("inpay"),
    object: "invoice_payment",
    created: world.seconds(),
    livemode: false,
    amount_paid: null,
    amount_requested: invoice.total,
    currency: "usd",
    invoice: invoice.id,
    is_default: true,
    payment: { type: "payment_intent", payment_intent: intent.id },
    status: "open",
  };
}

/** `POST /v1/invoices/{id}/pay`: charges the saved card. Throws if the bank declines. */
export function payInvoice(world: StripeState, id: string, params: Params): Invoice {
  params.allowOnly(["off_session", "payment_method"]);
  const invoice = openInvoice(world, id);
  const customer = liveCustomer(world, invoice.customer);
  const chosen =
    methodOf(world, params, "payment_method", customer.id) ??
    invoice.default_payment_method ??
    customer.invoice_settings.default_payment_method;
  const method = world.methods.get(chosen ?? "");
  if (method === undefined || method.customer !== customer.id) {
    throw wrongState(
      "There is no `default_payment_method` set on this Customer or Invoice. Please set a `default_payment_method`.",
      "missing",
    );
  }
  return attempt(world, invoice, method);
}

function attempt(world: StripeState, invoice: Invoice, method: PaymentMethod): Invoice {
  const intent = defaultIntent(world, invoice);
  const behavior = world.nextCharges.shift() ?? world.cards.get(method.id) ?? "ok";
  invoice.attempted = true;
  invoice.attempt_count++;
  if (behavior === "ok") {
    settleBy(world, invoice, intent, method);
    return invoice;
  }
  const declined = declineOf(behavior, method);
  if (declined !== null) decline(world, intent, method, declined);
  const error = declined ?? requireApproval(world, intent, method, behavior === "asks");
  if (declined === null) world.emit("invoice.payment_action_required", invoice);
  world.emit("invoice.payment_failed", invoice);
  throw cardError(error, structuredClone(intent));
}

function settleBy(
  world: StripeState,
  invoice: Invoice,
  intent: Intent,
  method: PaymentMethod,
): void {
  capture(world, intent, method);
  markPaid(world, invoice, intent.id);
  world.emit("invoice.paid", invoice);
}

function markPaid(world: StripeState, invoice: Invoice, intentId: string): void {
  Object.assign(invoice, { status: "paid", amount_paid: invoice.total, amount_remaining: 0 });
  for (const payment of world.invoicePayments.values()) {
    if (payment.payment.payment_intent !== intentId) continue;
    Object.assign(payment, { status: "paid", amount_paid: invoice.total });
  }
}

function openInvoice(world: StripeState, id: string): Invoice {
  const invoice = found(world.invoices, id, "invoice");
  if (invoice.status === "paid") throw wrongState("Invoice is already paid");
  if (invoice.status !== "open") {
    throw wrongState(
      `Invoice can't be paid because it is ${invoice.status}.`,
      "invoice_not_editable",
    );
  }
  return invoice;
}

/** Returns the payment of a finalized invoice. */
function defaultIntent(world: StripeState, invoice: Invoice): Intent {
  const payment = [...world.invoicePayments.values()].find((one) => one.invoice === invoice.id);
  return found(world.intents, payment?.payment.payment_intent ?? "", "payment_intent");
}

/** `POST /v1/invoices/{id}/void`: prevents payment. */
export function voidInvoice(world: StripeState, id: string): Invoice {
  const invoice = found(world.invoices, id, "invoice");
  if (invoice.status === "draft") {
    throw wrongState(
      "You can only pass in open invoices. This invoice isn't open.",
      "invoice_not_editable",
    );
  }
  if (invoice.status !== "open") {
    throw wrongState(`You can't void an invoice that is ${invoice.status}.`);
  }
  invoice.status = "void";
  defaultIntent(world, invoice).status = "canceled";
  for (const payment of world.invoicePayments.values()) {
    if (payment.invoice === id) payment.status = "canceled";
  }
  world.emit("invoice.voided", invoice);
  return invoice;
}

/** `DELETE /v1/invoices/{id}`: deletes a draft. */
export function deleteInvoice(world: StripeState, id: string): object {
  const invoice = found(world.invoices, id, "invoice");
  if (invoice.status !== "draft") {
    throw wrongState("You can only delete draft invoices.", "invoice_not_editable");
  }
  world.invoices.delete(id);
  return { id, object: "invoice", deleted: true };
}

/** Pays on the invoice's page, with the bank's approval if needed. */
export function payOnInvoicePage(world: StripeState, id: string): Intent {
  const invoice = openInvoice(world, id);
  const intent = defaultIntent(world, invoice);
  const method = world.methods.get(intent.payment_method ?? "") ?? newCard(world);
  settleBy(world, invoice, intent, method);
  return intent;
}

/** Marks an invoice as paid out of band, without any payment. */
export function payElsewhere(world: StripeState, id: string): void {
  const invoice = openInvoice(world, id);
  defaultIntent(world, invoice).status = "canceled";
  Object.assign(invoice, { status: "paid", amount_paid: 0, amount_remaining: 0 });
  world.emit("invoice.paid", invoice);
}

/** Retries open invoices with their card, as for `auto_advance=true`. */
export function collectOpen(world: StripeState): void {
  for (const invoice of world.invoices.values()) {
    const method = world.methods.get(invoice.default_payment_method ?? "");
    if (invoice.status !== "open" || !invoice.auto_advance || method === undefined) continue;
    if ((world.cards.get(method.id) ?? "ok") === "ok") attempt(world, invoice, method);
  }
}

export function paidInvoice(
  world: StripeState,
  session: Session,
  intent: Intent,
  terms: SessionTerms,
): Invoice {
  const invoice = draft(world, session.customer);
  world.invoices.set(invoice.id, invoice);
  invoice.automatic_tax.enabled = session.automatic_tax.enabled;
  invoice.metadata = { ...terms.invoiceMetadata };
  addLine(world, invoice, session.amount_subtotal, terms.isInclusive);
  open(world, invoice);
  const payment = paymentOf(world, invoice, intent);
  world.invoicePayments.set(payment.id, payment);
  markPaid(world, invoice, intent.id);
  return invoice;
}
