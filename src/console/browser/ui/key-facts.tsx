import type { Key } from "../api/types.ts";
import { microsOf, spent } from "../lib/money.ts";
import { Badge, Bar } from "./basics.tsx";

export function stateOf(key: Key, now: number): "live" | "revoked" | "expired" {
  if (key.revoked) return "revoked";
  const { expires_at } = key;
  return expires_at && Date.parse(expires_at) <= now ? "expired" : "live";
}

export function KeyState({ state }: { state: "live" | "revoked" | "expired" }) {
  const tone = { live: "good", revoked: "bad", expired: "warn" } as const;
  return <Badge tone={tone[state]}>{state}</Badge>;
}

export function Budget({ apiKey }: { apiKey: Key }) {
  const { budget_dollars, budget_period, spent_dollars } = apiKey;
  if (budget_dollars === undefined || budget_dollars === null) {
    return <span class="muted">no budget</span>;
  }
  const gone = spent(microsOf(spent_dollars ?? 0));
  const period = budget_period ? ` a ${budget_period}` : "";
  return (
    <Bar
      used={spent_dollars ?? 0}
      limit={budget_dollars}
      label={`${gone} of ${spent(microsOf(budget_dollars))}${period}`}
    />
  );
}
