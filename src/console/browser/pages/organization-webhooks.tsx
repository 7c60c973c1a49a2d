import { useState } from "preact/hooks";
import type { WebhookAndHealth } from "../api/types.ts";
import { DAY_MS, formatLocalMinute } from "../lib/time.ts";
import { change, useRead } from "../state/reads.ts";
import { usePathSegments } from "../state/route.ts";
import { useCanMakeCall } from "../state/session.ts";
import { Facts, Panel, Button } from "../ui/basics.tsx";
import { FormDialog, MOMENT, useChange, useTyped } from "../ui/dialog.tsx";
import { List } from "../ui/list.tsx";
import { Empty, FailureNotice, ReadResult } from "../ui/states.tsx";
import { DELIVERY_COLUMNS, healthFacts } from "../ui/webhooks.tsx";

type WebhookProps = { readonly id: string; readonly webhook: WebhookAndHealth };

export function Webhooks() {
  const [, id = ""] = usePathSegments();
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

function WebhookPanel({ id, webhook }: WebhookProps) {
  const may = useCanMakeCall();
  const [replaying, setReplaying] = useState(false);
  const [tested, setTested] = useState<string | null>(null);
  const path = { id, webhook_id: webhook.id };
  const { busy, failure, start } = useChange(
    () => change("POST /admin/v1/orgs/{id}/webhooks/{webhook_id}/test", { path }, []),
    ({ delivered, error }) => setTested(delivered ? "The test arrived." : `Failed: ${error}.`),
  );
  return (
    <Panel
      title={webhook.url}
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
      <Facts facts={healthFacts(webhook)} />
      <List
        name="Deliveries"
        call="GET /admin/v1/orgs/{id}/webhooks/{webhook_id}/deliveries"
        filling={{ path }}
        rowsOf={({ deliveries }) => deliveries}
        limit={10}
        height={200}
        columns={DELIVERY_COLUMNS}
        empty="Nothing has been sent yet."
      />
      {replaying && <Replay id={id} webhook={webhook} onClose={() => setReplaying(false)} />}
    </Panel>
  );
}

function Replay({ id, webhook, onClose }: WebhookProps & { onClose: () => void }) {
  const [{ since }, line] = useTyped({ since: formatLocalMinute(Date.now() - DAY_MS) });
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
