import { dollarsOf } from "../money.ts";
import type { AutoTopUp } from "./payments.ts";

export function autoTopUpView(setting: AutoTopUp | null) {
  if (setting === null) return null;
  return {
    below_dollars: dollarsOf(setting.belowMicro),
    amount_dollars: dollarsOf(setting.amountMicro),
    most_per_month_dollars: dollarsOf(setting.mostPerMonthMicro),
  };
}
