import type {
  Charge,
  Dispute,
  DisputeStatus,
  Intent,
  Refund,
  RefundStatus,
  Warning,
} from "./objects.ts";
import type { Params } from "./params.ts";
import { badParameter, missing, wrongState } from "./stripe-error.ts";
import { found } from "./state.ts";
import type { StripeState } from "./state.ts";

const COUNTS: ReadonlySet<RefundStatus> = new Set(["pending", "requires_action", "succeeded"]);
const WITHDRAWN: ReadonlySet<DisputeStatus> = new Set([
  "needs_response",
  "under_review",
  "lost",
  "appeal_needs_response",
  "appeal_under_review",
]);
const CLOSED: ReadonlySet<DisputeStatus> = new Set(["won", "lost", "warning_closed", "prevented"]);

function chargeOf(state: StripeState, intent: Intent): Charge {
  return found(state.charges, intent.latest_charge ?? "", "charge");
}

const refundsOf = (state: StripeState, intent: string): Refund[] =>
  [...state.refunds.values()].filter((one) => one.payment_intent === intent);
const disputesOf = (state: StripeState, intent: string): Dispute[] =>
  [...state.disputes.values()].filter((one) => one.payment_intent === intent);
const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
const refunded = (state: StripeState, intent: string): number =>
  sum(refundsOf(state, intent).map((one) => (COUNTS.has(one.status) ? one.amount : 0)));

/** `POST /v1/refunds`. */
export function createRefund(state: StripeState, params: Params): Refund {
  params.allowOnly(["payment_intent", "amount", "reason", "metadata[*]"]);
  const id = params.required("payment_intent");
  const intent = state.intents.get(id);
  if (intent === undefined) throw missing(id, "payment_intent");
  const cents = params.text("amount") === null ? null : params.amount("amount");
  return refund(state, id, { cents, status: "succeeded", metadata: params.metadata("metadata") });
}

type NewRefund = {
  readonly cents: number | null;
  readonly status: RefundStatus;
  readonly metadata?: Record<string, string>;
};

/** Refunds a payment, by default everything left. */
export function refund(
  state: StripeState,
  id: string,
  { cents, status, metadata = {} }: NewRefund,
): Refund {
  const intent = found(state.intents, id, "payment_intent");
  if (intent.status !== "succeeded") {
    throw wrongState("This PaymentIntent does not have a successful charge to refund.");
  }
  const charge = chargeOf(state, intent);
  if (disputesOf(state, id).some((one) => !one.is_charge_refundable)) {
    throw wrongState(
      `Charge ${charge.id} has been charged back; cannot issue a refund.`,
      "charge_disputed",
    );
  }
  const remaining = intent.amount_received - refunded(state, id);
  const amount = cents ?? remaining;
  if (remaining === 0) {
    throw wrongState(`Charge ${charge.id} has already been refunded.`, "charge_already_refunded");
  }
  if (amount > remaining) {
    throw badParameter(
      `Refund amount ($${amount / 100}) is greater than unrefunded amount on charge ($${remaining / 100})`,
      "amount",
    );
  }
  const newRefund: Refund = {
    id: state.id("re"),
    object: "refund",
    created: state.seconds(),
    amount,
    charge: charge.id,
    currency: "usd",
    metadata,
    payment_intent: id,
    status,
  };
  state.refunds.set(newRefund.id, newRefund);
  charge.amount_refunded += amount;
  charge.refunded = charge.amount_refunded >= charge.amount;
  state.emit("refund.created", newRefund);
  state.emit("charge.refunded", charge);
  return newRefund;
}

/**
 * Changes a refund's status. A failed refund doesn't change the charge's total, so only the list of
 * refunds is right.
 */
export function moveRefund(
  state: StripeState,
  id: string,
  status: RefundStatus,
  reason?: string,
): void {
  const one = found(state.refunds, id, "refund");
  one.status = status;
  if (reason !== undefined) one.failure_reason = reason;
  state.emit("refund.updated", one);
  if (status === "failed") state.emit("refund.failed", one);
}

export function dispute(
  state: StripeState,
  id: string,
  cents: number | null,
  status: DisputeStatus,
): Dispute {
  const intent = found(state.intents, id, "payment_intent");
  const charge = chargeOf(state, intent);
  for (const one of refundsOf(state, id)) {
    if (one.status === "pending") {
      moveRefund(state, one.id, "failed", "charge_for_pending_refund_disputed");
    }
  }
  const newDispute: Dispute = {
    id: state.id("du"),
    object: "dispute",
    created: state.seconds(),
    livemode: false,
    amount: cents ?? intent.amount_received,
    balance_transactions: [],
    charge: charge.id,
    currency: "usd",
    is_charge_refundable: true,
    metadata: {},
    payment_intent: id,
    reason: "fraudulent",
    status: "warning_needs_response",
  };
  state.disputes.set(newDispute.id, newDispute);
  charge.disputed = true;
  enter(state, newDispute, status, null);
  state.emit("charge.dispute.created", newDispute);
  if (WITHDRAWN.has(status)) state.emit("charge.dispute.funds_withdrawn", newDispute);
  return newDispute;
}

/**
 * Changes a dispute's status, which withdraws money or returns it. A won dispute can return a part
 * (`cents`).
 */
export function moveDispute(
  state: StripeState,
  id: string,
  status: DisputeStatus,
  cents: number | null,
): void {
  const one = found(state.disputes, id, "dispute");
  const before = withdrawn(state, one);
  enter(state, one, status, cents);
  const after = withdrawn(state, one);
  state.emit(CLOSED.has(status) ? "charge.dispute.closed" : "charge.dispute.updated", one);
  if (after > before) state.emit("charge.dispute.funds_withdrawn", one);
  if (after < before) state.emit("charge.dispute.funds_reinstated", one);
}

function enter(
  state: StripeState,
  one: Dispute,
  status: DisputeStatus,
  cents: number | null,
): void {
  const move = (amount: number): void => {
    one.balance_transactions.push({
      id: state.id("txn"),
      amount,
      currency: "usd",
      type: "adjustment",
    });
  };
  const out = -sum(one.balance_transactions.map(({ amount }) => amount));
  if (WITHDRAWN.has(status) && out < one.amount) {
    move(out - one.amount);
    state.reinstated.delete(one.id);
  }
  if (status === "won" && out > 0) {
    const back = Math.min(cents ?? out, out);
    move(back);
    state.reinstated.set(one.id, (state.reinstated.get(one.id) ?? 0) + back);
  }
  one.status = status;
  one.is_charge_refundable = status.startsWith("warning_");
}

/** Returns the part of the charge that a dispute withholds, in cents. */
function withdrawn(state: StripeState, one: Dispute): number {
  if (WITHDRAWN.has(one.status)) return one.amount;
  return one.status === "won" ? one.amount - (state.reinstated.get(one.id) ?? one.amount) : 0;
}

/** Creates an early fraud warning. */
export function warn(state: StripeState, id: string): Warning {
  const charge = chargeOf(state, found(state.intents, id, "payment_intent"));
  const one: Warning = {
    id: state.id("issfr"),
    object: "radar.early_fraud_warning",
    created: state.seconds(),
    livemode: false,
    actionable: true,
    charge: charge.id,
    fraud_type: "unauthorized_use_of_card",
    payment_intent: id,
  };
  state.warnings.set(one.id, one);
  state.emit("radar.early_fraud_warning.created", one);
  return one;
}

/** A payment's final state in cents. `gross` excludes refunds. */
export type Truth = {
  readonly captured: number;
  readonly refunded: number;
  readonly withdrawn: number;
  readonly gross: number;
};

export function truthOf(state: StripeState, id: string): Truth {
  const { amount_received: captured } = found(state.intents, id, "payment_intent");
  const back = refunded(state, id);
  const kept = sum(disputesOf(state, id).map((one) => withdrawn(state, one)));
  return { captured, refunded: back, withdrawn: kept, gross: Math.min(captured, back + kept) };
}

/** A payment with its received amount, total, tax and purpose. Amounts are in cents. */
export type Payment = {
  readonly intent: string;
  readonly customer: string | null;
  readonly received: number;
  readonly total: number;
  readonly tax: number;
  readonly session: string | null;
  readonly invoice: string | null;
};

export function paymentsOf(state: StripeState): Payment[] {
  return [...state.intents.values()].flatMap((intent) => {
    if (intent.amount_received === 0) return [];
    const by = [...state.invoicePayments.values()].find(
      ({ payment }) => payment.payment_intent === intent.id,
    );
    const invoice = state.invoices.get(by?.invoice ?? "");
    const session = [...state.sessions.values()].find((one) => one.payment_intent === intent.id);
    return [
      {
        intent: intent.id,
        customer: intent.customer,
        received: intent.amount_received,
        total: intent.amount,
        tax:
          session?.total_details.amount_tax ??
          sum((invoice?.total_taxes ?? []).map((one) => one.amount)),
        session: session?.id ?? null,
        invoice: invoice?.id ?? null,
      },
    ];
  });
}
