import type { CardBehavior, CardError, Charge, Intent, PaymentMethod } from "./objects.ts";
import type { StripeState } from "./state.ts";

type IntentFields = Pick<Intent, "amount" | "customer" | "metadata" | "setup_future_usage">;

export function newIntent(state: StripeState, fields: IntentFields): Intent {
  const intent: Intent = {
    id: state.id("pi"),
    object: "payment_intent",
    created: state.seconds(),
    livemode: false,
    amount_received: 0,
    currency: "usd",
    payment_method: null,
    latest_charge: null,
    last_payment_error: null,
    next_action: null,
    status: "requires_payment_method",
    ...fields,
  };
  state.intents.set(intent.id, intent);
  state.emit("payment_intent.created", intent);
  return intent;
}

/** Creates a card, which has no customer until it is saved. */
export function newCard(state: StripeState, last4 = "4242"): PaymentMethod {
  const method: PaymentMethod = {
    id: state.id("pm"),
    object: "payment_method",
    created: state.seconds(),
    livemode: false,
    type: "card",
    customer: null,
    card: { brand: "visa", last4, exp_month: 8, exp_year: 2031, fingerprint: `fp_${last4}` },
  };
  state.methods.set(method.id, method);
  return method;
}

/** Captures the whole payment. */
export function capture(state: StripeState, intent: Intent, method: PaymentMethod): void {
  const charge = newCharge(state, intent, method, "authorized");
  Object.assign(intent, {
    status: "succeeded",
    amount_received: intent.amount,
    payment_method: method.id,
    latest_charge: charge.id,
    last_payment_error: null,
    next_action: null,
  });
  state.emit("charge.succeeded", charge);
  state.emit("payment_intent.succeeded", intent);
}

/** Declines a payment, which then waits for another card. */
export function decline(
  state: StripeState,
  intent: Intent,
  method: PaymentMethod,
  error: CardError,
): void {
  const isBlocked = error.decline_code === undefined && error.code === "card_declined";
  const charge = newCharge(state, intent, method, isBlocked ? "blocked" : "issuer_declined");
  charge.failure_code = error.code;
  Object.assign(intent, {
    status: "requires_payment_method",
    payment_method: null,
    latest_charge: charge.id,
    last_payment_error: error,
    next_action: null,
  });
  state.emit("charge.failed", charge);
  state.emit("payment_intent.payment_failed", intent);
}

/** Requires the customer's approval. Declines the payment if the customer is absent. */
export function requireApproval(
  state: StripeState,
  intent: Intent,
  method: PaymentMethod,
  isAway: boolean,
): CardError {
  if (isAway) {
    const error: CardError = {
      type: "card_error",
      code: "authentication_required",
      decline_code: "authentication_required",
      message: "Your card was declined. This transaction requires authentication.",
      payment_method: { id: method.id },
    };
    decline(state, intent, method, error);
    return error;
  }
  intent.status = "requires_action";
  intent.payment_method = method.id;
  intent.next_action = { type: "use_stripe_sdk" };
  state.emit("payment_intent.requires_action", intent);
  return {
    type: "invalid_request_error",
    code: "invoice_payment_intent_requires_action",
    message: "This payment requires additional user action before it can be completed.",
  };
}

/** Returns the bank's error, or null if the bank pays or requires approval. */
export function declineOf(behavior: CardBehavior, method: PaymentMethod): CardError | null {
  if (typeof behavior === "string") return null;
  const error: CardError = {
    type: "card_error",
    code: "card_declined",
    message: "Your card was declined.",
    payment_method: { id: method.id },
  };
  if ("blocked" in behavior) return error;
  const isExpired = behavior.decline_code === "expired_card";
  return { ...error, ...behavior, code: isExpired ? "expired_card" : error.code };
}

function newCharge(
  state: StripeState,
  intent: Intent,
  method: PaymentMethod,
  outcome: Charge["outcome"]["type"],
): Charge {
  const isPaid = outcome === "authorized";
  const id = state.id("ch");
  const charge: Charge = {
    id,
    object: "charge",
    created: state.seconds(),
    livemode: false,
    amount: intent.amount,
    amount_captured: isPaid ? intent.amount : 0,
    amount_refunded: 0,
    currency: "usd",
    customer: intent.customer,
    disputed: false,
    failure_code: null,
    metadata: { ...intent.metadata },
    outcome: { type: outcome },
    paid: isPaid,
    captured: isPaid,
    payment_intent: intent.id,
    payment_method: method.id,
    payment_method_details: { type: "card", card: { ...method.card } },
    receipt_url: isPaid ? `${state.pages}/receipts/${id}` : null,
    refunded: false,
    status: isPaid ? "succeeded" : "failed",
  };
  state.charges.set(charge.id, charge);
  return charge;
}
