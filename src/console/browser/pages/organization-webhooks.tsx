import { useState } from "preact/hooks";
import type { Delivery, WebhookAndHealth } from "../api/types.ts";
import { countText } from "../lib/money.ts";
import { DAY, localMinute } from "../lib/time.ts";
import { change, useRead } from "../state/reads.ts";
import { usePath } from "../state/route.ts";
import { useMay } from "../state/session.ts";
import { Badge, Facts, Panel, Time, Button } from "../ui/basics.tsx";
import { FormDialog, MOMENT, useChange, useTyped } from "../ui/dialog.tsx";
import { List } from "../ui/list.tsx";
import { Empty, FailureNotice, ReadResult } from "../ui/states.tsx";
import { column, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

type WebhookProps = { readonly id: string; readonly webhook: WebhookAndHealth };

export function Webhooks() {
  const [, id = ""] = usePath();
  const path = { id };
  const read = useRead("GET /admin/v1/orgs/{id}/webhooks", { path }, { every: 15_000 });
  return (
    <ReadResult read={read} height={240}>
      {({ webhooks }) =>
        webhooks.length === 0 ? (
          <Empty text="No webhooks. No events are sent." />
        ) : (
          <>
            {webhooks.map((webhook) => (
              <WebhookPanel key={webhook.id} id={id} webhook={webhook} />
            ))}
          </>
        )
      }
    </ReadResult>
  );
}

const TONES = { ok: "good", failing: "bad", off: "plain" } as const;

const healthFacts = (health: NonNullable<WebhookAndHealth["health"]>) =>
  [
    ["Health", <Badge tone={TONES[health.state]}>{health.state}</Badge>],
    ["Failing since", health.failing_since && <Time at={health.failing_since} />],
    ["Last error", health.last_error],
    ["Waiting", countText(health.waiting, "event")],
    ["Attempts of 24 hours", `${health.delivered_24h} delivered, ${health.failed_24h} failed`],
    ["Last delivered", <Time at={health.last_success_at} none="never" />],
  ] as const;

function WebhookPanel({ id, webhook }: WebhookProps) {
  const may = useMay();
  const { health, url } = webhook;
  const [replaying, setReplaying] = useState(false);
  const [tested, setTested] = useState<string | null>(null);
  const path = { id, webhook_id: webhook.id };
  const { busy, failure, start } = useChange(
    () => change("POST /admin/v1/orgs/{id}/webhooks/{webhook_id}/test", { path }, []),
    ({ delivered, error }) => setTested(delivered ? "The test arrived." : `Failed: ${error}.`),
  );
  return (
    <Panel
      title={url}
      aside={
        <>
          {may("POST /admin/v1/orgs/{id}/webhooks/{webhook_id}/test") && (
            <Button text="Send test event" disabled={busy} onClick={start} />
          )}{" "}
          {may("POST /admin/v1/orgs/{id}/webhooks/{webhook_id}/replay") && (
            <Button text="Replay…" onClick={() => setReplaying(true)} />
          )}
        </>
      }
    >
      {tested !== null && <p role="status">{tested}</p>}
      {failure && <FailureNotice failure={failure} />}
      <Facts
        facts={[
          ...(health === null ? [["Health", "unknown"] as const] : healthFacts(health)),
          ["Events", webhook.types?.join(", ") ?? "all"],
        ]}
      />
      <Deliveries id={id} webhookId={webhook.id} />
      {replaying && <Replay id={id} webhook={webhook} onClose={() => setReplaying(false)} />}
    </Panel>
  );
}

function Deliveries({ id, webhookId }: { id: string; webhookId: string }) {
  return (
    <List
      name="Deliveries"
      call="GET /admin/v1/orgs/{id}/webhooks/{webhook_id}/deliveries"
      filling={{ path: { id, webhook_id: webhookId } }}
      read={({ deliveries, next_after }) => ({ rows: deliveries, next: next_after })}
      limit={10}
      height={200}
      columns={COLUMNS}
      empty="Nothing was sent yet."
    />
  );
}

const STATES = { delivered: "good", pending: "warn", failed: "bad" } as const;
const COLUMNS: readonly Column<Delivery>[] = [
  timeColumn("created", "Created", ({ created_at }) => created_at),
  column("type", "Event", ({ type }) => type),
  column("state", "State", ({ state }) => state, {
    cell: ({ state }) => <Badge tone={STATES[state]}>{state}</Badge>,
  }),
  column(
    "answer",
    "Answer",
    ({ status, error }) => error ?? (status === null ? "" : String(status)),
  ),
  column("attempts", "Attempts", ({ attempts }) => attempts, { align: "right" }),
];

function Replay({ id, webhook, onClose }: WebhookProps & { onClose: () => void }) {
  const [{ since }, line] = useTyped({ since: localMinute(Date.now() - DAY) });
  return (
    <FormDialog
      title={`Replay to ${webhook.url}`}
      verb="Replay"
      run={() => {
        const path = { id, webhook_id: webhook.id };
        const body = { since: new Date(since).toISOString() };
        const call = "POST /admin/v1/orgs/{id}/webhooks/{webhook_id}/replay";
        return change(call, { path, body }, ["/admin/v1/orgs"]);
      }}
      onClose={onClose}
    >
      {line("since", "Resend events since", {
        ...MOMENT,
        hint: "In your time zone; at most 1,000 events, including delivered ones.",
      })}
    </FormDialog>
  );
}
