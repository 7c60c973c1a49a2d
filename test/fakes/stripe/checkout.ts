import { requireApproval, capture, decline, declineOf, newCard, newIntent } from "./charging.ts";
import type { CardBehavior, Intent, PaymentMethod, Session, SessionTerms } from "./objects.ts";
import type { Params } from "./params.ts";
import { paidInvoice } from "./invoices.ts";
import { badParameter, wrongState } from "./stripe-error.ts";
import { found, liveCustomer, taxOf } from "./state.ts";
import type { StripeState } from "./state.ts";

const LEAST_CENTS = 50;
const LEAST_S = 30 * 60;
const MOST_S = 24 * 3600;
/** Allowed time between sending a request and Stripe's clock, in seconds. */
const GRACE_S = 60;

const SESSION_FIELDS = [
  "mode",
  "customer",
  "customer_creation",
  "customer_email",
  "customer_update[name]",
  "customer_update[address]",
  "customer_update[shipping]",
  "client_reference_id",
  "metadata[*]",
  "payment_intent_data[metadata][*]",
  "payment_intent_data[setup_future_usage]",
  "payment_intent_data[description]",
  "payment_intent_data[statement_descriptor_suffix]",
  "line_items[][price_data][currency]",
  "line_items[][price_data][unit_amount]",
  "line_items[][price_data][tax_behavior]",
  "line_items[][price_data][product_data][name]",
  "line_items[][price_data][product_data][description]",
  "line_items[][price_data][product_data][tax_code]",
  "line_items[][quantity]",
  "automatic_tax[enabled]",
  "tax_id_collection[enabled]",
  "billing_address_collection",
  "invoice_creation[enabled]",
  "invoice_creation[invoice_data][metadata][*]",
  "invoice_creation[invoice_data][description]",
  "adaptive_pricing[enabled]",
  "allowed_payment_method_types[]",
  "expires_at",
  "success_url",
  "cancel_url",
  "locale",
  "submit_type",
] as const;

/** `POST /v1/checkout/sessions`. */
export function createSession(state: StripeState, params: Params): Session {
  params.allowOnly(SESSION_FIELDS);
  if (params.oneOf("mode", ["payment", "setup", "subscription"]) !== "payment") {
    throw badParameter("This account sells by mode=payment.", "mode");
  }
  const customer = liveCustomer(state, params.required("customer"));
  refuseCombinations(params);
  const lines = linesOf(params);
  const subtotal = lines.reduce((sum, { amount }) => sum + amount, 0);
  if (subtotal < LEAST_CENTS) {
    throw badParameter(
      "The Checkout Session's total amount due must add up to at least $0.50 usd",
      undefined,
      "amount_too_small",
    );
  }
  const id = state.id("cs_test");
  const session: Session = {
    id,
    object: "checkout.session",
    created: state.seconds(),
    livemode: false,
    mode: "payment",
    amount_subtotal: subtotal,
    amount_total: subtotal,
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    automatic_tax: { enabled: params.flag("automatic_tax[enabled]") ?? false },
    invoice_creation: { enabled: params.flag("invoice_creation[enabled]") ?? false },
    cancel_url: params.text("cancel_url") === null ? null : params.url("cancel_url"),
    success_url: params.url("success_url"),
    client_reference_id: params.text("client_reference_id"),
    currency: "usd",
    customer: customer.id,
    expires_at: expiryOf(state, params),
    invoice: null,
    metadata: params.metadata("metadata"),
    payment_intent: null,
    payment_status: "unpaid",
    status: "open",
    url: `${state.pages}/c/pay/${id}`,
  };
  state.sessions.set(id, session);
  state.terms.set(id, termsOf(params, lines));
  return session;
}

function refuseCombinations(params: Params): void {
  for (const other of ["customer_creation", "customer_email"]) {
    if (params.text(other) === null) continue;
    throw badParameter(`You may only specify one of these parameters: customer, ${other}.`, other);
  }
  const updates = (what: string): boolean =>
    params.oneOf(`customer_update[${what}]`, ["auto", "never"]) === "auto";
  if (params.flag("automatic_tax[enabled]") === true && !updates("address")) {
    throw badParameter(
      "Automatic tax calculation in Checkout requires a valid address on the Customer. Add a valid address to the Customer or set either `customer_update[address]` to 'auto'.",
      "customer_update[address]",
      "customer_tax_location_invalid",
    );
  }
  if (params.flag("tax_id_collection[enabled]") === true && !updates("name")) {
    throw badParameter(
      "Tax ID collection requires updating business name on the customer. To enable tax ID collection for an existing customer, please set `customer_update[name]` to `auto`.",
      "customer_update[name]",
    );
  }
  params.oneOf("payment_intent_data[setup_future_usage]", ["off_session", "on_session"]);
  params.oneOf("billing_address_collection", ["auto", "required"]);
  params.flag("adaptive_pricing[enabled]");
}

function linesOf(params: Params): SessionTerms["lines"] {
  const lines = params.indices("line_items").map((index) => {
    const at = `line_items[${index}]`;
    const currency = params.required(`${at}[price_data][currency]`);
    if (currency !== "usd") {
      throw badParameter("This fake sells in usd.", `${at}[price_data][currency]`);
    }
    const price = params.amount(`${at}[price_data][unit_amount]`);
    params.oneOf(`${at}[price_data][tax_behavior]`, ["exclusive", "inclusive", "unspecified"]);
    const name = params.required(`${at}[price_data][product_data][name]`);
    return { name, amount: price * params.amount(`${at}[quantity]`) };
  });
  if (lines.length > 0) return lines;
  throw badParameter("Missing required param: line_items.", "line_items", "parameter_missing");
}

function expiryOf(state: StripeState, params: Params): number {
  const now = state.seconds();
  const at = params.integer("expires_at") ?? now + MOST_S;
  if (at >= now + LEAST_S - GRACE_S && at <= now + MOST_S + GRACE_S) return at;
  throw badParameter(
    "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.",
    "expires_at",
  );
}

function termsOf(params: Params, lines: SessionTerms["lines"]): SessionTerms {
  return {
    intentMetadata: params.metadata("payment_intent_data[metadata]"),
    invoiceMetadata: params.metadata("invoice_creation[invoice_data][metadata]"),
    keepsCard: params.text("payment_intent_data[setup_future_usage]") === "off_session",
    takesAddress: params.text("customer_update[address]") === "auto",
    isInclusive: params.text("line_items[0][price_data][tax_behavior]") === "inclusive",
    lines,
  };
}

/** Expires sessions that have ended, each with its event. */
export function expireSessions(state: StripeState): void {
  for (const session of state.sessions.values()) {
    if (session.status === "open" && session.expires_at <= state.seconds()) expire(state, session);
  }
}

/** `POST /v1/checkout/sessions/{id}/expire`. */
export function expireSession(state: StripeState, id: string): Session {
  const session = found(state.sessions, id, "checkout.session");
  if (session.status !== "open") {
    throw wrongState(
      `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of ${session.status}.`,
    );
  }
  expire(state, session);
  return session;
}

function expire(state: StripeState, session: Session): void {
  session.status = "expired";
  session.url = null;
  const intent = state.intents.get(session.payment_intent ?? "");
  if (intent !== undefined) intent.status = "canceled";
  state.emit("checkout.session.expired", session);
}

/** Pays on the session's page. A declined card leaves the session open. */
export function payOnPage(state: StripeState, id: string, behavior: CardBehavior): Intent {
  expireSessions(state);
  const session = found(state.sessions, id, "checkout.session");
  if (session.status !== "open") throw wrongState(`This session is ${session.status}.`);
  const method = newCard(state, lastFourOf(behavior));
  const intent = intentOf(state, session);
  const error = declineOf(behavior, method);
  if (error !== null) decline(state, intent, method, error);
  else if (behavior === "ok") complete(state, session, intent, method);
  else requireApproval(state, intent, method, false);
  return intent;
}

/** Ends the bank's approval step. */
export function answerBank(state: StripeState, id: string, isApproved: boolean): Intent {
  const session = found(state.sessions, id, "checkout.session");
  const intent = found(state.intents, session.payment_intent ?? "", "payment_intent");
  const method = found(state.methods, intent.payment_method ?? "", "payment_method");
  if (session.status !== "open" || intent.status !== "requires_action") {
    throw wrongState("The bank asked nothing.");
  }
  if (isApproved) complete(state, session, intent, method);
  else {
    decline(state, intent, method, {
      type: "card_error",
      code: "payment_intent_authentication_failure",
      message: "We are unable to authenticate your payment method.",
    });
  }
  return intent;
}

function lastFourOf(behavior: CardBehavior): string {
  if (behavior === "ok") return "4242";
  return typeof behavior === "string" ? "3155" : "0002";
}

function intentOf(state: StripeState, session: Session): Intent {
  const terms = found(state.terms, session.id, "checkout.session");
  const known = state.intents.get(session.payment_intent ?? "");
  if (known !== undefined) return known;
  if (session.automatic_tax.enabled) {
    const tax = taxOf(state, session.amount_subtotal, terms.isInclusive);
    session.total_details.amount_tax = tax;
    session.amount_total = session.amount_subtotal + (terms.isInclusive ? 0 : tax);
  }
  const intent = newIntent(state, {
    amount: session.amount_total,
    customer: session.customer,
    metadata: { ...terms.intentMetadata },
    setup_future_usage: terms.keepsCard ? "off_session" : null,
  });
  session.payment_intent = intent.id;
  return intent;
}

function complete(
  state: StripeState,
  session: Session,
  intent: Intent,
  method: PaymentMethod,
): void {
  const terms = found(state.terms, session.id, "checkout.session");
  const customer = state.customers.get(session.customer);
  if (customer !== undefined && terms.takesAddress) {
    customer.address = {
      country: "DE",
      postal_code: "10115",
      city: "Berlin",
      line1: "Invalidenstr. 1",
    };
  }
  if (terms.keepsCard) {
    method.customer = session.customer;
    state.emit("payment_method.attached", method);
  }
  capture(state, intent, method);
  Object.assign(session, { status: "complete", payment_status: "paid", url: null });
  if (session.invoice_creation.enabled) {
    session.invoice = paidInvoice(state, session, intent, terms).id;
  }
  state.emit("checkout.session.completed", session);
  if (session.invoice !== null) {
    state.emit("invoice.paid", found(state.invoices, session.invoice, "invoice"));
  }
}
