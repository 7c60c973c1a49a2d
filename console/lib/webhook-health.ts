/** What of a delivery says how its webhook does; the newest first. */
export type Sent = {
  readonly state: "delivered" | "pending" | "failed";
  readonly created_at: string;
  readonly last_attempt_at: string | null;
};
export type WebhookHealth = {
  readonly waiting: number;
  /** Of the last 24 hours. */
  readonly delivered: number;
  readonly failed: number;
  /** Since when nothing arrived although it was tried; null while it does. */
  readonly failingSince: string | null;
};

const DAY_MS = 86_400_000;

/** How a webhook does, by its newest deliveries. */
export function webhookHealth(sent: readonly Sent[], now: number): WebhookHealth {
  const within = sent.filter(({ created_at }) => now - Date.parse(created_at) < DAY_MS);
  const of = (state: Sent["state"]): number => within.filter((one) => one.state === state).length;
  const lastSuccess = newest(sent.filter(({ state }) => state === "delivered"));
  const failing = sent.filter(
    ({ state, last_attempt_at: at }) => state !== "delivered" && at !== null && at > lastSuccess,
  );
  return {
    waiting: sent.filter(({ state }) => state === "pending").length,
    delivered: of("delivered"),
    failed: of("failed"),
    failingSince: failing.at(-1)?.created_at ?? null,
  };
}

function newest(sent: readonly Sent[]): string {
  return sent.reduce((last, { last_attempt_at: at }) => (at !== null && at > last ? at : last), "");
}
