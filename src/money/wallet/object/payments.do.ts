import type {
  CreditPage,
  CreditRow,
  PaymentReversal,
  PaymentCredit,
  PaymentsStatus,
  PurchaseOutcome,
  WalletPaymentMethods,
} from "../../../shared/contracts/payments.ts";
import { conflict, refuse, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { balanceAfterCredit } from "../rules/ledger.ts";
import { collectDebt, forgiveDebt, applyRefund } from "../rules/debts.ts";
import { freeBalance } from "../rules/open-holds.ts";
import { completeTopUp, sumTopUpsOfMonth } from "../rules/top-up.ts";
import {
  insertForgivenDebt,
  putDebts,
  putPayment,
  putTopUp,
  selectForgivenDebt,
  selectPayment,
} from "../tables/payment-rows.do.ts";
import { addEvent } from "./event-log.do.ts";
import type { WalletEvent } from "./event-log.do.ts";
import { nextPublishRevision, assertCurrentInstance } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";
import { postCredit, findStoredCreditResult } from "./postings.do.ts";
import { readTotalCharged } from "./usage.do.ts";
import { disableTopUp, recordTopUpFailure, startTopUpIfDue } from "./top-up.do.ts";

export function creditPayment(tx: Tx, credit: PaymentCredit): Result<{ readonly madeAt: number }> {
  const { paymentId, purchaseId, netMicro, method, actor } = credit;
  const { memory, sql } = tx;
  const request = { amountMicro: netMicro, reference: creditReference(tx, paymentId), actor };
  const before = findStoredCreditResult(tx, request);
  if (before !== null && !before.ok) return before;
  const topUp = completeTopUp(memory.topUp, purchaseId);
  const data = { method, amount_micro: netMicro, payment_id: paymentId };
  const also = (): void => {
    if (selectPayment(sql, paymentId) === null) {
      const ids = { id: paymentId, purchaseId };
      putPayment(
        sql,
        { ...ids, credited: netMicro, refunded: micros(0), reading: 0 },
        nextPublishRevision(tx),
      );
    }
    if (topUp !== memory.topUp) putTopUp(sql, topUp);
    addEvent(tx, { type: "purchase.credited", subject: purchaseId, data }, [purchaseId, paymentId]);
  };
  if (before === null) {
    const decided = balanceAfterCredit(memory.ledger, netMicro);
    if (!decided.ok) return decided;
    postCredit(tx, request, { balance: decided.value, also });
  } else tx.storage.transactionSync(also);
  memory.topUp = topUp;
  memory.hasChanges = true;
  return success({ madeAt: memory.row.madeAt });
}

/**
 * Returns the ledger reference of a payment's credit: a new one if a rebuild of the wallet lost the
 * first.
 */
function creditReference({ memory, sql }: Tx, paymentId: string): string {
  const reference = `stripe:${paymentId}`;
  if (selectPayment(sql, paymentId) !== null) return reference;
  const isGivenUp = sql
    .exec(
      `SELECT 1 FROM entries WHERE reference = ?1
      AND NOT EXISTS (SELECT 1 FROM adopted_credits WHERE reference = ?1)`,
      reference,
    )
    .toArray();
  return isGivenUp.length === 0 ? reference : `${reference}:${memory.row.madeAt}`;
}

/** Sets a payment's total refunded or disputed amount. */
export function recordRefund(tx: Tx, request: PaymentReversal): Result<null> {
  const { memory, sql } = tx;
  const { paymentId, purchaseId, backMicro: back, reading, isDisputed } = request;
  const payment = selectPayment(sql, paymentId);
  if (payment === null) return refuse({ kind: "not_found", message: "No such payment." });
  const moved = applyRefund(memory.debts, payment, { back, reading });
  if (moved === null) return success(null);
  const { debts, returned } = moved;
  const data = {
    purchase_id: purchaseId,
    back_micro: moved.payment.refunded,
    owed_micro: debts.owed,
  };
  const type =
    moved.payment.refunded > payment.refunded ? "payment.reversed" : "payment.reinstated";
  const event: WalletEvent = { type, subject: paymentId, data };
  const also = (): void => {
    putPayment(sql, moved.payment, nextPublishRevision(tx));
    putDebts(sql, debts, nextPublishRevision(tx));
    if (moved.payment.refunded !== payment.refunded) addEvent(tx, event);
  };
  if (returned > 0) {
    const reference = `stripe:${paymentId}:back:${reading}`;
    const decided = balanceAfterCredit(memory.ledger, returned);
    if (!decided.ok) return decided;
    postCredit(tx, { amountMicro: returned, reference }, { balance: decided.value, also });
  } else tx.storage.transactionSync(also);
  memory.debts = debts;
  memory.hasChanges = true;
  if (isDisputed && moved.payment.refunded > payment.refunded) disableTopUp(tx, "disputed");
  return success(null);
}

/**
 * Records the outcome of a purchase. A failed automatic purchase delays or disables the next one.
 */
export function recordPurchaseOutcome(
  tx: Tx,
  { event, once, topUp }: PurchaseOutcome,
): Result<null> {
  tx.storage.transactionSync(() => {
    addEvent(tx, event, once);
  });
  if (topUp !== null) recordTopUpFailure(tx, topUp.id, topUp.end);
  return success(null);
}

export function forgiveOwedCredits(
  tx: Tx,
  { amountMicro, reference, actor }: Parameters<WalletPaymentMethods["forgive"]>[0],
): Result<{ readonly owedMicro: Micros }> {
  const { memory, sql } = tx;
  const before = selectForgivenDebt(sql, reference);
  if (before === amountMicro) return success({ owedMicro: memory.debts.owed });
  if (before !== null) {
    return conflict("This reference was already used with another amount.", "reference");
  }
  const debts = forgiveDebt(memory.debts, amountMicro);
  if (!debts.ok) return debts;
  const data = { amount_micro: amountMicro, owed_micro: debts.value.owed, reference };
  tx.storage.transactionSync(() => {
    insertForgivenDebt(sql, reference, amountMicro);
    putDebts(sql, debts.value, nextPublishRevision(tx));
    addEvent(tx, { type: "payment.forgiven", actor, subject: memory.row.orgId, data });
  });
  memory.debts = debts.value;
  memory.hasChanges = true;
  return success({ owedMicro: debts.value.owed });
}

/** Pays debts from free credits, then starts an automatic top-up if one is due. */
export function collectDebtsAndTopUp(tx: Tx): void {
  const { memory, sql } = tx;
  const collected = collectDebt(memory.debts, freeBalance(memory.ledger));
  if (collected !== null) {
    const { debts, paid } = collected;
    const reference = `owed:${memory.row.madeAt}:${memory.ledger.seq + 1}`;
    const balance = micros(memory.ledger.balance - paid);
    const also = (): void => putDebts(sql, debts, nextPublishRevision(tx));
    const request = { amountMicro: micros(0 - paid), reference };
    postCredit(tx, request, { balance, also });
    memory.debts = debts;
  }
  startTopUpIfDue(tx, false);
}

export function hasDebtsOrAutoTopUp({ memory }: Tx): boolean {
  return memory.debts.owed > 0 || memory.row.settings.autoTopUp !== null;
}

export function readPaymentsStatus({ memory, period }: Tx): PaymentsStatus {
  const { debts, topUp, row } = memory;
  return {
    owedMicro: debts.owed,
    takenMicro: debts.taken,
    forgivenMicro: debts.forgiven,
    autoTopUp: row.settings.autoTopUp,
    topUp: {
      purchaseId: topUp.open?.id ?? null,
      monthMicro: sumTopUpsOfMonth(topUp, period.month),
      pausedUntil: topUp.open === null ? topUp.pausedUntil : null,
      disabledReason: topUp.disabledReason,
    },
    madeAt: row.madeAt,
  };
}

/** Returns credits, newest first. Collected debts are negative credits. */
export function readCredits(tx: Tx, limit: number, after: number | null): Result<CreditPage> {
  assertCurrentInstance(tx);
  const rows = tx.sql
    .exec<CreditRow>(
      `SELECT seq, amount AS amountMicro, balance AS balanceMicro, reference,
        created_at AS createdAt, (SELECT purchase_id FROM payments
          WHERE id = substr(reference, 8, instr(substr(reference, 8) || ':', ':') - 1)) AS purchaseId
      FROM entries WHERE kind = 'credit' AND seq < ? ORDER BY seq DESC LIMIT ?`,
      after ?? Number.MAX_SAFE_INTEGER,
      limit + 1,
    )
    .toArray();
  const credits = rows.slice(0, limit);
  const nextAfter = rows.length > limit ? (credits.at(-1)?.seq ?? null) : null;
  const lifetime = { balanceMicro: tx.memory.ledger.balance, usedMicro: readTotalCharged(tx) };
  return success({ credits, nextAfter, standing: readPaymentsStatus(tx), lifetime });
}
