import { dollarsOf } from "../lib/money.ts";
import type { AutoTopUp } from "./payments.ts";

/** When credits are bought automatically, as the interface shows it; null: never. */
export function autoTopUpView(setting: AutoTopUp | null): Readonly<Record<string, number>> | null {
  if (setting === null) return null;
  return {
    below_dollars: dollarsOf(setting.belowMicro),
    amount_dollars: dollarsOf(setting.amountMicro),
    most_per_month_dollars: dollarsOf(setting.mostPerMonthMicro),
  };
}
