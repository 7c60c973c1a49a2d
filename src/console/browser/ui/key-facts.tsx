import type { Key } from "../api/types.ts";
import { findMostUsedBudget } from "../lib/budgets.ts";
import { Badge, UsageBar } from "./basics.tsx";

export function keyStateOf(key: Key, now: number): "live" | "revoked" | "expired" {
  if (key.revoked) return "revoked";
  const { expires_at } = key;
  return expires_at && Date.parse(expires_at) <= now ? "expired" : "live";
}

export function KeyState({ state }: { state: "live" | "revoked" | "expired" }) {
  const tone = { live: "good", revoked: "bad", expired: "warn" } as const;
  return <Badge tone={tone[state]}>{state}</Badge>;
}

export function Budget({ apiKey }: { apiKey: Key }) {
  const most = findMostUsedBudget(apiKey);
  return most === null ? <span class="muted">no budget</span> : <UsageBar {...most} />;
}
