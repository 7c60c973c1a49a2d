import { usePathSegments, goTo } from "../state/route.ts";
import { EventTabs, WEBHOOKS } from "../ui/event-tabs.tsx";
import { useState, useEffect } from "preact/hooks";
import type { Webhook, WebhookAndHealth, WebhookTest } from "../api/types.ts";
import { latestOf, useRead, change } from "../state/reads.ts";
import { useCanMakeCall } from "../state/session.ts";
import { Badge, PageHead, Time, Button, Facts } from "../ui/basics.tsx";
import { Empty, ReadResult, FailureNotice } from "../ui/states.tsx";
import { Table, column, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import {
  NewWebhook,
  EditWebhook,
  isMetered,
  ReplayEvents,
  RotateWebhook,
  TOUCHES,
} from "./webhook-forms.tsx";
import { formatDuration } from "../lib/time.ts";
import { Confirm, Dialog, useChange } from "../ui/dialog.tsx";
import { HealthBadge, responseStatusText, healthFacts } from "../ui/webhooks.tsx";
import { ResponseBody, Deliveries } from "./deliveries.tsx";

export function WebhookPages() {
  const [, id] = usePathSegments();
  return id === undefined ? <Webhooks /> : <WebhookDetail id={id} />;
}

const WEBHOOKS_MAX = 5;

function goToWebhooks(id?: string): void {
  goTo(["events", ...(id === undefined ? [] : [id])], { tab: WEBHOOKS });
}

function Webhooks() {
  const [making, setMaking] = useState(false);
  const mayMake = useCanMakeCall()("POST /v1/webhooks");
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
      <EventTabs current={WEBHOOKS} />
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

function WebhookState({ webhook }: { webhook: Webhook }) {
  const off = webhook.disabled_reason === "by_request" ? "plain" : "bad";
  return <Badge tone={webhook.enabled ? "good" : off}>{stateText(webhook)}</Badge>;
}

type Doing = "test" | "edit" | "switch" | "rotate" | "replay" | null;

function WebhookDetail({ id }: { id: string }) {
  const [deleting, setDeleting] = useState<Webhook | null>(null);
  // The page stops reading a webhook during its deletion.
  if (deleting) return <Delete webhook={deleting} onClose={() => setDeleting(null)} />;
  return <ActiveDetail id={id} onDelete={setDeleting} />;
}

function ActiveDetail({ id, onDelete }: { id: string; onDelete: (webhook: Webhook) => void }) {
  const [doing, setDoing] = useState<Doing>(null);
  const read = useRead("GET /v1/webhooks/{id}", { path: { id } }, { every: 5000 });
  const close = (): void => setDoing(null);
  const one = latestOf(read);
  const button = (what: Doing, text: string) => (
    <Button text={text} onClick={() => setDoing(what)} />
  );
  const may = useCanMakeCall();
  const mayChange = may("PATCH /v1/webhooks/{id}");
  return (
    <>
      <PageHead title="Webhook" text={one && <span class="break">{one.url}</span>}>
        <Button text="All webhooks" onClick={() => goToWebhooks()} />
        {one && (
          <>
            {mayChange && button("edit", "Change")}
            {mayChange && button("switch", one.enabled ? "Disable webhook" : "Enable webhook")}
            {!isMetered(one) &&
              may("POST /v1/webhooks/{id}/rotate") &&
              button("rotate", "Rotate secret…")}
            {one.enabled && may("POST /v1/webhooks/{id}/replay") && button("replay", "Replay…")}
            {may("DELETE /v1/webhooks/{id}") && (
              <Button text="Delete…" class="danger" onClick={() => onDelete(one)} />
            )}
            {!isMetered(one) && may("POST /v1/webhooks/{id}/test") && (
              <Button text="Send test event" class="primary" onClick={() => setDoing("test")} />
            )}
          </>
        )}
      </PageHead>
      <ReadResult read={read} height={120}>
        {(webhook) => (
          <>
            <WebhookFacts webhook={webhook} />
            <Deliveries id={id} />
            {doing === "edit" && <EditWebhook webhook={webhook} onClose={close} />}
            {doing === "rotate" && <RotateWebhook webhook={webhook} onClose={close} />}
            {doing === "test" && <TestCall webhook={webhook} onClose={close} />}
            {doing === "switch" && <Switch webhook={webhook} onClose={close} />}
          </>
        )}
      </ReadResult>
      {doing === "replay" && one && <ReplayEvents webhook={one} onClose={close} />}
    </>
  );
}

type Props = { readonly webhook: Webhook; readonly onClose: () => void };

function WebhookFacts({ webhook }: { webhook: WebhookAndHealth }) {
  const until = webhook.previous_secret_until;
  return (
    <Facts
      inPanel
      facts={[
        ["State", <WebhookState webhook={webhook} />],
        ...healthFacts(webhook),
        ["Old secret signs until", until && <Time at={until} />],
        ["Created", <Time at={webhook.created_at} />],
        ["Id", <code>{webhook.id}</code>],
      ]}
    />
  );
}

function TestCall({ webhook: { id, url }, onClose }: Props) {
  const [testResult, setTestResult] = useState<WebhookTest | null>(null);
  const { busy, failure, start } = useChange(
    () => change("POST /v1/webhooks/{id}/test", { path: { id } }, []),
    setTestResult,
  );
  useEffect(start, []);
  return (
    <Dialog title="Send test event" onClose={onClose}>
      <p class="break">
        <code>webhook.test</code> to {url} once, with a signature like every message.
      </p>
      {failure && <FailureNotice failure={failure} />}
      {testResult && (
        <div role="status">
          <Facts
            facts={[
              ["State", testResult.delivered ? "Delivered" : "Failed"],
              ["Answer", responseStatusText(testResult)],
              ["Duration", formatDuration(testResult.duration_ms ?? 0)],
            ]}
          />
          <ResponseBody answer={testResult.answer} />
        </div>
      )}
      <div class="actions end">
        <Button text="Close" onClick={onClose} />
        <Button
          text={busy ? "Working…" : "Send again"}
          class="primary"
          disabled={busy}
          onClick={start}
        />
      </div>
    </Dialog>
  );
}

function Switch({ webhook: { id, enabled }, onClose }: Props) {
  const path = { id };
  const verb = enabled ? "Disable webhook" : "Enable webhook";
  return (
    <Confirm
      title={`${verb}?`}
      verb={verb}
      run={() => change("PATCH /v1/webhooks/{id}", { path, body: { enabled: !enabled } }, TOUCHES)}
      onClose={onClose}
    >
      <p>
        {enabled
          ? "Drops pending events. A later replay can send missed events."
          : "Events are sent from now on. A replay sends the missed events."}
      </p>
    </Confirm>
  );
}

function Delete({ webhook: { id, url }, onClose }: Props) {
  return (
    <Confirm
      title="Delete this webhook?"
      verb="Delete webhook"
      run={() => change("DELETE /v1/webhooks/{id}", { path: { id } }, TOUCHES)}
      onClose={onClose}
      onDone={() => goToWebhooks()}
    >
      <p class="break">
        Stops all messages to {url} and deletes the webhook's secret and deliveries.
      </p>
    </Confirm>
  );
}
