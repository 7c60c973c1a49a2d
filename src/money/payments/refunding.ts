import type { RefundRequest } from "../../shared/contracts/payments.ts";
import { logEvent } from "../../shared/log.ts";
import { conflict, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import type { Purchase, PaymentDeps } from "./purchase.ts";
import {
  buildPostCall,
  buildReadRefundCall,
  buildListRefundsCall,
  buildRefundParams,
} from "./stripe-calls.ts";
import { refundSchema, refundsSchema } from "./stripe-objects.ts";
import { parseStripeBody } from "./stripe.ts";

const REFUSAL_MESSAGES: Readonly<Record<string, string>> = {
  charge_already_refunded: "This payment was already refunded in full.",
  charge_disputed: "This payment is disputed and can't be refunded until the dispute ends.",
  refund_disputed_payment: "This payment is disputed and can't be refunded until the dispute ends.",
  amount_too_large: "The amount can't exceed the part of this payment that has not been refunded.",
  insufficient_funds: "The balance at Stripe is too low for this refund.",
};

/** Refunds a payment once per `name`. The wallet changes only after a later read from Stripe. */
export async function refundPayment(
  { rows, stripe }: Pick<PaymentDeps, "rows" | "stripe">,
  purchase: Purchase,
  ask: RefundRequest,
): Promise<Result<string>> {
  const { amountCents, name, actor } = ask;
  const payment = rows.payment(purchase.paymentId ?? "");
  if (payment === null) {
    return conflict("Nothing was paid for this purchase.", null, "nothing_paid");
  }
  const before = await checkEarlierRefund(stripe, payment.id, { amountCents, name });
  if (!before.ok) return before;
  if (before.value) return success(payment.id);
  const params = buildRefundParams(payment.id, ask);
  const answer = await stripe.ask(
    buildPostCall("/v1/refunds", params, `${purchase.id}:refund:${name}`),
  );
  if (answer.kind === "unsure") return refuse({ kind: "storage_unavailable" });
  if (answer.kind === "refused") {
    if (answer.error.type === "idempotency_error") return refuse({ kind: "idempotency_mismatch" });
    const message = REFUSAL_MESSAGES[answer.error.code ?? ""] ?? "Stripe refused this refund.";
    return conflict(message, null, "refund_refused");
  }
  logEvent("refund_asked", {
    id: purchase.id,
    payment_id: payment.id,
    by: actor.id ?? actor.kind,
    reason: ask.reason ?? null,
  });
  return success(payment.id);
}

/** Returns the payment's ID for a refund ID (`re_`), or null. Returns other IDs unchanged. */
export async function resolvePaymentId(
  stripe: PaymentDeps["stripe"],
  id: string,
): Promise<string | null> {
  if (!id.startsWith("re_")) return id;
  return (
    parseStripeBody(await stripe.ask(buildReadRefundCall(id)), refundSchema)?.payment_intent ?? null
  );
}

/**
 * Reports whether a refund with this name exists, because Stripe keeps idempotency keys only for a
 * day.
 */
async function checkEarlierRefund(
  stripe: PaymentDeps["stripe"],
  paymentId: string,
  { amountCents, name }: Pick<RefundRequest, "amountCents" | "name">,
): Promise<Result<boolean>> {
  const listed = parseStripeBody(await stripe.ask(buildListRefundsCall(paymentId)), refundsSchema);
  if (listed === null) return refuse({ kind: "storage_unavailable" });
  const made = listed.data.find(({ metadata }) => metadata?.["refund"] === name);
  if (made === undefined) {
    return listed.has_more
      ? conflict("This payment has the maximum number of refunds.", null, "refund_refused")
      : success(false);
  }
  const isSame = amountCents === null || amountCents === made.amount;
  return isSame ? success(true) : refuse({ kind: "idempotency_mismatch" });
}
