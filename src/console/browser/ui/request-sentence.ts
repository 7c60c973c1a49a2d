import type { Generation } from "../api/types.ts";
import { spent } from "../lib/money.ts";

const IN_STREAM = new Map([[200, "Broken off in its stream"]]);

/** Returns a request's result in words for the error's reader. */
export function sentenceOf({
  status,
  error,
  cost_micro: cost,
  held_micro: held,
}: Generation): string {
  const charged = cost > 0 ? `${spent(cost)} was charged.` : "Nothing was charged.";
  if (status === "held") return `It is running: ${spent(held ?? 0)} is held for it.`;
  if (status === "expired") return `No outcome came in time: its hold was released. ${charged}`;
  if (error === null) return `It ${status === "settled" ? "succeeded" : "failed"}. ${charged}`;
  const repeat = cost === 0 && (error.status >= 500 || error.status === 429);
  const what = status === "refused" ? "Refused" : (IN_STREAM.get(error.status) ?? "Failed");
  return `${what}: ${error.message} ${charged}${repeat ? " Repeating it is safe." : ""}`;
}
