import type { Generation } from "../api/types.ts";
import { formatExact, rewriteAmounts } from "../lib/money.ts";

const OUTCOMES = new Map([
  [200, "Failed while streaming"],
  [499, "Stopped"],
]);

export function describeRequest({
  status,
  error,
  cost_micro: cost,
  held_micro: held,
}: Generation): string {
  const charged = cost > 0 ? `${formatExact(cost)} was charged.` : "Nothing was charged.";
  if (status === "held") return `Running: ${formatExact(held ?? 0)} is on hold.`;
  if (status === "expired") return `Expired: the hold was released without a result. ${charged}`;
  if (error === null) {
    return `${status === "settled" ? "Succeeded." : "Failed. The cause wasn't recorded."} ${charged}`;
  }
  const repeat = cost === 0 && (error.status >= 500 || error.status === 429);
  const what = OUTCOMES.get(error.status) ?? (status === "refused" ? "Rejected" : "Failed");
  return `${what}: ${rewriteAmounts(error.message)} ${charged}${repeat ? " Retrying is safe." : ""}`;
}
