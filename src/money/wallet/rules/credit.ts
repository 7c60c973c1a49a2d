import { refuse, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import type { HoldTotals } from "./open-holds.ts";

/**
 * Returns the balance after a credit. Fails if the balance would exceed 2^53 - 1 micro-credits, or
 * if a negative amount would lower it below the open holds.
 */
export function balanceAfterCredit(ledger: HoldTotals, amount: Micros): Result<Micros> {
  const balance = ledger.balance + amount;
  if (!Number.isSafeInteger(balance)) {
    return refuse({
      kind: "invalid_request",
      message: `The balance can't exceed ${Number.MAX_SAFE_INTEGER} micro-credits. Use a smaller amount.`,
      param: "amount_micro",
    });
  }
  if (amount < 0 && balance < ledger.held) {
    return refuse({
      kind: "conflict",
      message: "The correction can't exceed the available balance.",
      param: "amount_micro",
      code: "balance_too_low",
    });
  }
  return success(micros(balance));
}
