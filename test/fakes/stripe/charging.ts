import type { CardBehavior, CardError, Charge, Intent, PaymentMethod } from "./objects.ts";
import type { StripeState } from "./state.ts";

type Wanted = Pick<Intent, "amount" | "customer" | "metadata" | "setup_future_usage">;

export function newIntent(world: StripeState, wanted: Wanted): Intent {
  const intent: Intent = {
    id: world.id("pi"),
    object: "payment_intent",
    created: world.seconds(),
    livemode: false,
    amount_received: 0,
    currency: "usd",
    payment_method: null,
    latest_charge: null,
    last_payment_error: null,
    next_action: null,
    status: "requires_payment_method",
    ...wanted,
  };
  world.intents.set(intent.id, intent);
  world.emit("payment_intent.created", intent);
  return intent;
}

/** Creates a card, which has no customer until it is saved. */
export function newCard(world: StripeState, last4 = "4242"): PaymentMethod {
  const method: PaymentMethod = {
    id: world.id("pm"),
    object: "payment_method",
    created: world.seconds(),
    livemode: false,
    type: "card",
    customer: null,
    card: { brand: "visa", last4, exp_month: 8, exp_year: 2031, fingerprint: `fp_${last4}` },
  };
  world.methods.set(method.id, method);
  return method;
}

/** Captures the whole payment. */
export function capture(world: StripeState, intent: Intent, method: PaymentMethod): void {
  const charge = newCharge(world, intent, method, "authorized");
  Object.assign(intent, {
    status: "succeeded",
    amount_received: intent.amount,
    payment_method: method.id,
    latest_charge: charge.id,
    last_payment_error: null,
    next_action: null,
  });
  world.emit("charge.succeeded", charge);
  world.emit("payment_intent.succeeded", intent);
}

/** Declines a payment, which then waits for another card. */
export function decline(
  world: StripeState,
  intent: Intent,
  method: PaymentMethod,
  error: CardError,
): void {
  const isBlocked = error.decline_code === undefined && error.code === "card_declined";
  const charge = newCharge(world, intent, method, isBlocked ? "blocked" : "issuer_declined");
  charge.failure_code = error.code;
  Object.assign(intent, {
    status: "requires_payment_method",
    payment_method: null,
    latest_charge: charge.id,
    last_payment_error: error,
    next_action: null,
  });
  world.emit("charge.failed", charge);
  world.emit("payment_intent.payment_failed", intent);
}

/** Requires the customer's approval. Declines the payment if the customer is absent. */
export function requireApproval(
  world: StripeState,
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
    decline(world, intent, method, error);
    return error;
  }
  intent.status = "requires_action";
  intent.payment_method = method.id;
  intent.next_action = { type: "use_stripe_sdk" };
  world.emit("payment_intent.requires_action", intent);
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
  world: StripeState,
  intent: Intent,
  method: PaymentMethod,
  outcome: Charge["outcome"]["type"],
): Charge {
  const isPaid = outcome === "authorized";
  const id = world.id("ch");
  const charge: Charge = {
    id,
    object: "charge",
    created: world.seconds(),
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
    receipt_url: isPaid ? `${world.pages}/receipts/${id}` : null,
    refunded: false,
    status: isPaid ? "succeeded" : "failed",
  };
  world.charges.set(charge.id, charge);
  return charge;
}
