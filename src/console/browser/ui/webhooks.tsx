import type { Delivery, WebhookAndHealth } from "../api/types.ts";
import { countText, formatCount } from "../lib/money.ts";
import { Badge, Time } from "./basics.tsx";
import { column, timeColumn } from "./table.tsx";
import type { Column } from "./table.tsx";

export function HealthBadge({ health }: { health: WebhookAndHealth["health"] }) {
  if (health === null) return <span class="muted">unknown</span>;
  const { failing_since: since, last_error: error, waiting, state } = health;
  if (state === "off") return null;
  const queue = waiting === 0 ? "" : `, ${countText(waiting, "event")} waiting`;
  if (state === "ok") return <Badge tone="good">well{queue}</Badge>;
  return (
    <>
      <Badge tone="bad">
        failing since <Time at={since} />
      </Badge>
      {error !== null && `: ${error}`}
      {queue}
    </>
  );
}

export const healthFacts = ({ health, types }: WebhookAndHealth) =>
  [
    ["Health", <HealthBadge health={health} />],
    [
      "Attempts in 24 hours",
      health &&
        `${formatCount(health.delivered_24h)} delivered, ${formatCount(health.failed_24h)} failed`,
    ],
    ["Waiting", health && countText(health.waiting, "event")],
    ["Last delivered", health && <Time at={health.last_success_at} none="never" />],
    ["Events", types?.join(", ") ?? "all"],
  ] as const;

export const DELIVERY_COLUMNS: readonly Column<Delivery>[] = [
  timeColumn("created", "Created", ({ created_at }) => created_at),
  column("type", "Event", ({ type }) => type),
  column("state", "State", ({ state }) => state, {
    cell: (delivery) => <DeliveryState delivery={delivery} />,
  }),
  column("status", "Answer", responseStatusText, { wide: true }),
  column("attempts", "Attempts", ({ attempts }) => attempts, { align: "right" }),
  column("next", "Next attempt", ({ next_attempt_at }) => next_attempt_at, {
    wide: true,
    cell: ({ next_attempt_at: at }) => <NextTry at={at} />,
  }),
];

export function NextTry({ at }: { at: string | null }) {
  return at !== null && Date.parse(at) <= Date.now() ? <>now</> : <Time at={at} none="none" />;
}

const TONES = { delivered: "good", pending: "warn", failed: "bad" } as const;

export function DeliveryState({ delivery: { state } }: { delivery: Pick<Delivery, "state"> }) {
  return <Badge tone={TONES[state]}>{state}</Badge>;
}

const WHY: Readonly<Record<string, string>> = {
  timeout: "none in 15 s",
  unreachable: "none: the URL can't be reached",
  redirected: "a redirect, which is not followed",
  queue_full: "none: more than 10,000 were pending, and the oldest were dropped",
  repeat_unsafe: "none: the service may have the requests, and would count them twice",
  webhook_disabled: "none: the webhook was disabled",
};

export function responseStatusText({ status, error }: Pick<Delivery, "status" | "error">): string {
  const why = error === null ? "" : (WHY[error] ?? "");
  return [status, why].filter(Boolean).join(", ") || (error ?? "");
}
