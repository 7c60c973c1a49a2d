import { dollarsOf } from "../money.ts";
import type { AutoTopUp } from "./payments.ts";

/** When credits are bought automatically, as the interface shows it; null: never. */
export function autoTopUpView(
  setting: AutoTopUp | null | undefined,
): Readonly<Record<string, number>> | null {
  if (setting === null || setting === undefined) return null; // undefined: a wallet of the release before
  return {
    below_dollars: dollarsOf(setting.belowMicro),
    amount_dollars: dollarsOf(setting.amountMicro),
    most_per_month_dollars: dollarsOf(setting.mostPerMonthMicro),
  };
}
