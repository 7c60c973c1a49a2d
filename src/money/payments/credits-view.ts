import type { Card, CreditPage, CreditRow } from "../../shared/contracts/payments.ts";
import { autoTopUpView } from "../../shared/contracts/top-up-view.ts";
import { timestamp } from "../../shared/clock.ts";
import { dollarsOf, micros } from "../../shared/money.ts";
import { cardView } from "./purchase-view.ts";

type SaleLimits = {
  readonly dollarsMin: number;
  readonly dollarsMax: number;
  readonly card: Card | null;
} | null;

export function creditsView(page: CreditPage, sold: SaleLimits) {
  const { credits, nextAfter, standing: status, lifetime } = page;
  const { topUp, owedMicro, autoTopUp } = status;
  return {
    credits: credits.map(creditView),
    next_after: nextAfter,
    owed_micro: owedMicro,
    sold:
      sold === null
        ? null
        : { dollars_min: sold.dollarsMin, dollars_max: sold.dollarsMax, card: cardView(sold.card) },
    auto_top_up: autoTopUpView(autoTopUp),
    top_up: {
      purchase_id: topUp.purchaseId,
      month_micro: topUp.monthMicro,
      paused_until: topUp.pausedUntil === null ? null : timestamp(topUp.pausedUntil),
      disabled_reason: topUp.disabledReason,
    },
    data: lifetimeView(lifetime),
  };
}

/** Returns total credits and usage. OpenRouter's clients show their difference as the balance. */
function lifetimeView({ balanceMicro, usedMicro }: CreditPage["lifetime"]) {
  return {
    total_credits: dollarsOf(micros(balanceMicro + usedMicro)),
    total_usage: dollarsOf(usedMicro),
  };
}

function creditView(row: CreditRow) {
  return {
    id: String(row.seq),
    created_at: timestamp(row.createdAt),
    kind: creditKind(row),
    amount_micro: row.amountMicro,
    balance_micro: row.balanceMicro,
    reference: row.reference,
    purchase_id: row.purchaseId,
  };
}

type CreditKind = "payment" | "credit" | "correction" | "reversal" | "return" | "rebuild";

function creditKind({ reference, amountMicro }: CreditRow): CreditKind {
  if (reference.startsWith("rebuild:")) return "rebuild";
  if (reference.startsWith("owed:")) return "reversal";
  if (/^stripe:[^:]+:back:/.test(reference)) return "return";
  if (reference.startsWith("stripe:")) return "payment";
  return amountMicro < 0 ? "correction" : "credit";
}
