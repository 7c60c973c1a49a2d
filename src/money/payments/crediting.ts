import { logAlert, logWarning, errorMessageOf } from "../../shared/log.ts";
import { computeRefundedCredits, computeRefundedCents } from "./payment-rules.ts";
import {
  moveToPurchaseStep,
  schedulePurchaseRetry,
  storePurchase,
} from "./purchase-transitions.ts";
import type { Payment, PaymentDeps, Purchase } from "./purchase.ts";
import type { PurchaseStepFunction } from "./steps.ts";
import {
  buildDefaultCardParams,
  buildPostCall,
  buildListDisputesCall,
  buildListRefundsCall,
} from "./stripe-calls.ts";
import { disputesSchema, refundsSchema } from "./stripe-objects.ts";
import { parseStripeBody } from "./stripe.ts";

const CARD_ORGANIZATIONS_MAX = 3;

/** Credits a payment to the wallet, which credits each reference only once. */
export const creditWalletStep: PurchaseStepFunction = async (deps, purchase) => {
  const { rows } = deps;
  const { id, paymentId } = purchase;
  const payment = paymentId === null ? null : rows.payment(paymentId);
  if (payment === null) return moveToPurchaseStep(deps, purchase, "read");
  if (payment.netMicro === 0) {
    logAlert("payment_of_nothing", { id, payment_id: payment.id });
    return storePurchase(deps, purchase, { state: "credited", step: null, nextAt: null });
  }
  const answer = await sendCredit(deps, purchase, payment);
  const now = rows.purchase(id) ?? purchase;
  if (answer === null || !answer.ok) {
    const isConflict = answer?.failure.kind === "conflict";
    if (isConflict) logAlert("payment_conflict", { id, payment_id: payment.id });
    return schedulePurchaseRetry(deps, now);
  }
  const head = rows.head();
  rows.putPayment({ ...(rows.payment(payment.id) ?? payment), isCredited: true });
  rows.setHead({ ...head, walletMadeAt: head.walletMadeAt ?? answer.value.madeAt });
  const credited = storePurchase(deps, now, {
    state: "credited",
    step: null,
    sent: null,
    tries: 0,
    nextAt: null,
  });
  await recordCard(deps, payment);
  return rows.purchase(id) ?? credited;
};

function sendCredit({ wallet }: PaymentDeps, purchase: Purchase, payment: Payment) {
  const { id: purchaseId, method, actor } = purchase;
  const { id: paymentId, netMicro } = payment;
  const credit = { paymentId, purchaseId, method, netMicro, actor };
  return tryWalletCall(() => wallet.creditPayment(credit));
}

/** Makes a saved card the customer's default. Logs an alert if many organizations use the card. */
async function recordCard({ rows, stripe, store }: PaymentDeps, payment: Payment): Promise<void> {
  const { card, customer, orgId } = rows.head();
  if (card !== null && customer !== null && rows.purchase(payment.purchaseId)?.saveCard === true) {
    const path = `/v1/customers/${customer.id}`;
    const params = buildDefaultCardParams(card.paymentMethod);
    await stripe.ask(buildPostCall(path, params, `${payment.purchaseId}:default`));
  }
  if (payment.fingerprint === null) return;
  try {
    const organizations = await store.addCard(payment.fingerprint, orgId);
    if (organizations > CARD_ORGANIZATIONS_MAX) {
      logAlert("card_of_many", { org_id: orgId, organizations, payment_id: payment.id });
    }
  } catch (error) {
    logWarning("card_not_booked", { org_id: orgId, reason: errorMessageOf(error) });
  }
}

/**
 * Reads a payment's refunds from Stripe and sends the total to the wallet. Numbers the reads, so
 * that an older read never replaces a newer one. Returns false if the caller must retry.
 */
export async function sendRefundsToWallet(deps: PaymentDeps, paymentId: string): Promise<boolean> {
  const { rows, stripe, wallet } = deps;
  const before = rows.payment(paymentId);
  if (before === null || !before.isCredited) return false;
  const head = rows.head();
  const reading = Math.max(head.reading + 1, deps.now());
  rows.setHead({ ...head, reading });
  const refunds = parseStripeBody(await stripe.ask(buildListRefundsCall(paymentId)), refundsSchema);
  const disputes = parseStripeBody(
    await stripe.ask(buildListDisputesCall(paymentId)),
    disputesSchema,
  );
  if (refunds === null || disputes === null) return false;
  if (refunds.has_more || disputes.has_more) logAlert("refunds_many", { payment_id: paymentId });
  const { receivedCents, netMicro, purchaseId } = before;
  const back = computeRefundedCents(receivedCents, refunds.data, disputes.data);
  if (back.isUnknown) logAlert("dispute_unknown", { payment_id: paymentId });
  const backMicro = computeRefundedCredits(netMicro, back.cents, receivedCents);
  const target = { paymentId, purchaseId, backMicro, reading, isDisputed: back.isDisputed };
  const answer = await tryWalletCall(() => wallet.setBack(target));
  if (answer?.ok !== true) return false;
  const after = rows.payment(paymentId);
  if (after !== null && after.reading < reading) rows.putPayment({ ...after, backMicro, reading });
  return true;
}

/**
 * Sends all payments and refunds to a wallet rebuilt at `madeAt`. The wallet ignores duplicates.
 */
export async function resendPaymentsToWallet(deps: PaymentDeps, madeAt: number): Promise<boolean> {
  const { rows } = deps;
  for (const payment of rows.payments()) {
    const purchase = rows.purchase(payment.purchaseId);
    if (!payment.isCredited || purchase === null || payment.netMicro === 0) continue;
    const answer = await sendCredit(deps, purchase, payment);
    if (answer?.ok !== true) return false;
    // If `reading` is 0, no refund was ever sent. Otherwise, reads the refunds again, because D1's
    // amount can be outdated.
    const hasSentRefunds = payment.reading === 0 || (await sendRefundsToWallet(deps, payment.id));
    if (!hasSentRefunds) return false;
  }
  rows.setHead({ ...rows.head(), walletMadeAt: madeAt });
  return true;
}

/** Runs a wallet call. If the call throws, logs the error and returns null. */
export async function tryWalletCall<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call();
  } catch (error) {
    logWarning("wallet_not_reached", { reason: errorMessageOf(error) });
    return null;
  }
}
