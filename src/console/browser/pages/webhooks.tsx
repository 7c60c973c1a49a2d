import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Webhook, WebhookAndHealth } from "../api/types.ts";
import { countText } from "../lib/money.ts";
import { latestOf, useRead } from "../state/reads.ts";
import { goTo } from "../state/route.ts";
import { useMay } from "../state/session.ts";
import { Badge, PageHead, Time, Button } from "../ui/basics.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import { column, timeColumn } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";
import { NewWebhook } from "./webhook-forms.tsx";

const WEBHOOKS_MAX = 5;

export function goToWebhooks(id?: string): void {
  goTo(["events", ...(id === undefined ? [] : [id])], { tab: "Webhooks" });
}

export function Webhooks({ tabs }: { tabs: ComponentChildren }) {
  const [making, setMaking] = useState(false);
  const mayMake = useMay()("POST /v1/webhooks");
  const read = useRead("GET /v1/webhooks", {}, { every: 15_000 });
  const isFull = (latestOf(read)?.webhooks.length ?? 0) >= WEBHOOKS_MAX;
  return (
    <>
      <PageHead
        title="Events"
        text={`Each event is sent to these URLs with a signature until it is accepted. At most ${WEBHOOKS_MAX}.`}
      >
        {mayMake && (
          <Button
            text="New webhook"
            class="primary"
            disabled={isFull}
            onClick={() => setMaking(true)}
          />
        )}
      </PageHead>
      {tabs}
      <ReadResult read={read} height={480}>
        {({ webhooks }) => (
          <Table
            name="Webhooks"
            columns={COLUMNS}
            rows={webhooks}
            keyOf={({ id }) => id}
            open={({ id }) => goToWebhooks(id)}
            empty={
              <Empty text="No webhooks yet. Create one to receive events about credits, quotas, budgets and changes." />
            }
          />
        )}
      </ReadResult>
      {making && <NewWebhook onClose={() => setMaking(false)} onMade={goToWebhooks} />}
    </>
  );
}

const COLUMNS: readonly Column<WebhookAndHealth>[] = [
  column("url", "Address", ({ url }) => url, {
    cell: ({ url }) => <strong class="break">{url}</strong>,
  }),
  column("state", "State", stateText, { cell: (webhook) => <WebhookState webhook={webhook} /> }),
  column("last", "Health", ({ health }) => health?.state ?? null, {
    cell: ({ health }) => <HealthBadge health={health} />,
  }),
  column("types", "Events", ({ types }) => types?.join(", ") ?? "all", {
    wide: true,
    cell: ({ types }) =>
      types === null ? "all" : `${types.length} ${types.length === 1 ? "type" : "types"}`,
  }),
  timeColumn("created", "Created", ({ created_at }) => created_at, { wide: true }),
];

function stateText({ enabled, disabled_reason }: Webhook): string {
  if (enabled) return "on";
  const why = {
    by_request: "off",
    gone: "off: it answered 410",
    failing: "off: five days of failures",
  };
  return why[disabled_reason as keyof typeof why] ?? `off: ${disabled_reason}`;
}

export function WebhookState({ webhook }: { webhook: Webhook }) {
  const off = webhook.disabled_reason === "by_request" ? "plain" : "bad";
  return <Badge tone={webhook.enabled ? "good" : off}>{stateText(webhook)}</Badge>;
}

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
