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
export function createInvoice(state: StripeState, params: Params): Invoice {
  params.allowOnly(INVOICE_FIELDS);
  const customer = liveCustomer(state, params.required("customer"));
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
  const invoice = draft(state, customer.id);
  invoice.auto_advance = params.flag("auto_advance") ?? false;
  invoice.automatic_tax.enabled = params.flag("automatic_tax[enabled]") ?? false;
  invoice.default_payment_method = methodOf(state, params, "default_payment_method", customer.id);
  invoice.metadata = params.metadata("metadata");
  state.invoices.set(invoice.id, invoice);
  state.emit("invoice.created", invoice);
  return invoice;
}

function draft(state: StripeState, customer: string): Invoice {
  return {
    id: state.id("in"),
    object: "invoice",
    created: state.seconds(),
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
  state: StripeState,
  params: Params,
  name: string,
  customer: string,
): string | null {
  const id = params.text(name);
  if (id === null) return null;
  const method = state.methods.get(id);
  if (method === undefined) throw missing(id, name);
  if (method.customer === customer) return id;
  throw badParameter(
    `The payment method ${id} does not belong to the Customer ${customer}. Please use this payment method with the Customer that it belongs to instead.`,
    name,
  );
}

/** `POST /v1/invoiceitems`: adds a line to a draft. */
export function createItem(state: StripeState, params: Params): InvoiceItem {
  params.allowOnly(ITEM_FIELDS);
  const customer = liveCustomer(state, params.required("customer"));
  const id = params.required("invoice");
  const invoice = state.invoices.get(id);
  if (invoice === undefined || invoice.customer !== customer.id) throw missing(id, "invoice");
  if (invoice.status !== "draft") {
    throw wrongState("Invoice items can only be added to draft invoices.", "invoice_not_editable");
  }
  if (params.required("currency") !== invoice.currency) {
    throw badParameter("The currency of the item must be the invoice's.", "currency");
  }
  const item: InvoiceItem = {
    id: state.id("ii"),
    object: "invoiceitem",
    date: state.seconds(),
    livemode: false,
    amount: params.amount("amount"),
    currency: "usd",
    customer: customer.id,
    description: params.text("description"),
    invoice: id,
  };
  const isInclusive = params.oneOf("tax_behavior", ["exclusive", "inclusive"]) === "inclusive";
  state.items.set(item.id, item);
  addLine(state, invoice, item.amount, isInclusive);
  return item;
}

function addLine(state: StripeState, invoice: Invoice, cents: number, isInclusive: boolean): void {
  const tax = invoice.automatic_tax.enabled ? taxOf(state, cents, isInclusive) : 0;
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
export function finalizeInvoice(state: StripeState, id: string, params: Params): Invoice {
  params.allowOnly(["auto_advance"]);
  const invoice = found(state.invoices, id, "invoice");
  if (invoice.status !== "draft") {
    throw wrongState(
      "This invoice is already finalized, you can't re-finalize a non-draft invoice.",
      "invoice_not_editable",
    );
  }
  const customer = liveCustomer(state, invoice.customer);
  if (invoice.automatic_tax.enabled && customer.address === null) {
    throw wrongState(
      "The customer's location isn't recognized. Set a valid customer address in order to automatically calculate tax.",
      "customer_tax_location_invalid",
    );
  }
  invoice.auto_advance = params.flag("auto_advance") ?? invoice.auto_advance;
  open(state, invoice);
  const intent = newIntent(state, {
    amount: invoice.total,
    customer: invoice.customer,
    metadata: {},
    setup_future_usage: null,
  });
  const payment = paymentOf(state, invoice, intent);
  state.invoicePayments.set(payment.id, payment);
  state.emit("invoice.finalized", invoice);
  return invoice;
}

function open(state: StripeState, invoice: Invoice): void {
  invoice.status = "open";
  invoice.number = `TP-${state.invoices.size.toString().padStart(4, "0")}`;
  invoice.hosted_invoice_url = `${state.pages}/i/${invoice.id}`;
  invoice.invoice_pdf = `${state.pages}/i/${invoice.id}/pdf`;
}

function paymentOf(state: StripeState, invoice: Invoice, intent: Intent): InvoicePayment {
  return {
    id: state.id("inpay"),
    object: "invoice_payment",
    created: state.seconds(),
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
export function payInvoice(state: StripeState, id: string, params: Params): Invoice {
  params.allowOnly(["off_session", "payment_method"]);
  const invoice = openInvoice(state, id);
  const customer = liveCustomer(state, invoice.customer);
  const chosen =
    methodOf(state, params, "payment_method", customer.id) ??
    invoice.default_payment_method ??
    customer.invoice_settings.default_payment_method;
  const method = state.methods.get(chosen ?? "");
  if (method === undefined || method.customer !== customer.id) {
    throw wrongState(
      "There is no `default_payment_method` set on this Customer or Invoice. Please set a `default_payment_method`.",
      "missing",
    );
  }
  return attempt(state, invoice, method);
}

function attempt(state: StripeState, invoice: Invoice, method: PaymentMethod): Invoice {
  const intent = defaultIntent(state, invoice);
  const behavior = state.nextCharges.shift() ?? state.cards.get(method.id) ?? "ok";
  invoice.attempted = true;
  invoice.attempt_count++;
  if (behavior === "ok") {
    settleBy(state, invoice, intent, method);
    return invoice;
  }
  const declined = declineOf(behavior, method);
  if (declined !== null) decline(state, intent, method, declined);
  const error = declined ?? requireApproval(state, intent, method, behavior === "asks");
  if (declined === null) state.emit("invoice.payment_action_required", invoice);
  state.emit("invoice.payment_failed", invoice);
  throw cardError(error, structuredClone(intent));
}

function settleBy(
  state: StripeState,
  invoice: Invoice,
  intent: Intent,
  method: PaymentMethod,
): void {
  capture(state, intent, method);
  markPaid(state, invoice, intent.id);
  state.emit("invoice.paid", invoice);
}

function markPaid(state: StripeState, invoice: Invoice, intentId: string): void {
  Object.assign(invoice, { status: "paid", amount_paid: invoice.total, amount_remaining: 0 });
  for (const payment of state.invoicePayments.values()) {
    if (payment.payment.payment_intent !== intentId) continue;
    Object.assign(payment, { status: "paid", amount_paid: invoice.total });
  }
}

function openInvoice(state: StripeState, id: string): Invoice {
  const invoice = found(state.invoices, id, "invoice");
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
function defaultIntent(state: StripeState, invoice: Invoice): Intent {
  const payment = [...state.invoicePayments.values()].find((one) => one.invoice === invoice.id);
  return found(state.intents, payment?.payment.payment_intent ?? "", "payment_intent");
}

/** `POST /v1/invoices/{id}/void`: prevents payment. */
export function voidInvoice(state: StripeState, id: string): Invoice {
  const invoice = found(state.invoices, id, "invoice");
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
  defaultIntent(state, invoice).status = "canceled";
  for (const payment of state.invoicePayments.values()) {
    if (payment.invoice === id) payment.status = "canceled";
  }
  state.emit("invoice.voided", invoice);
  return invoice;
}

/** `DELETE /v1/invoices/{id}`: deletes a draft. */
export function deleteInvoice(state: StripeState, id: string): object {
  const invoice = found(state.invoices, id, "invoice");
  if (invoice.status !== "draft") {
    throw wrongState("You can only delete draft invoices.", "invoice_not_editable");
  }
  state.invoices.delete(id);
  return { id, object: "invoice", deleted: true };
}

/** Pays on the invoice's page, with the bank's approval if needed. */
export function payOnInvoicePage(state: StripeState, id: string): Intent {
  const invoice = openInvoice(state, id);
  const intent = defaultIntent(state, invoice);
  const method = state.methods.get(intent.payment_method ?? "") ?? newCard(state);
  settleBy(state, invoice, intent, method);
  return intent;
}

/** Marks an invoice as paid out of band, without any payment. */
export function payElsewhere(state: StripeState, id: string): void {
  const invoice = openInvoice(state, id);
  defaultIntent(state, invoice).status = "canceled";
  Object.assign(invoice, { status: "paid", amount_paid: 0, amount_remaining: 0 });
  state.emit("invoice.paid", invoice);
}

/** Retries open invoices with their card, as for `auto_advance=true`. */
export function collectOpen(state: StripeState): void {
  for (const invoice of state.invoices.values()) {
    const method = state.methods.get(invoice.default_payment_method ?? "");
    if (invoice.status !== "open" || !invoice.auto_advance || method === undefined) continue;
    if ((state.cards.get(method.id) ?? "ok") === "ok") attempt(state, invoice, method);
  }
}

export function paidInvoice(
  state: StripeState,
  session: Session,
  intent: Intent,
  terms: SessionTerms,
): Invoice {
  const invoice = draft(state, session.customer);
  state.invoices.set(invoice.id, invoice);
  invoice.automatic_tax.enabled = session.automatic_tax.enabled;
  invoice.metadata = { ...terms.invoiceMetadata };
  addLine(state, invoice, session.amount_subtotal, terms.isInclusive);
  open(state, invoice);
  const payment = paymentOf(state, invoice, intent);
  state.invoicePayments.set(payment.id, payment);
  markPaid(state, invoice, intent.id);
  return invoice;
}
