import { useState } from "preact/hooks";
import type { Delivery, DeliveryDetail } from "../api/types.ts";
import { countText } from "../lib/money.ts";
import { change, useRead } from "../state/reads.ts";
import { hrefOf, useQuery } from "../state/route.ts";
import { useCanMakeCall } from "../state/session.ts";
import { Facts, Panel, Tabs, Button } from "../ui/basics.tsx";
import { Dialog, useChange } from "../ui/dialog.tsx";
import { List } from "../ui/list.tsx";
import { FailureNotice, ReadResult } from "../ui/states.tsx";
import { DELIVERY_COLUMNS, DeliveryState, NextTry, responseStatusText } from "../ui/webhooks.tsx";
import { Grid, actionsColumn, column, durationColumn, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

const RESEND = "POST /v1/webhooks/{id}/resend";

export function Deliveries({ id }: { id: string }) {
  const [opened, setOpened] = useState<Delivery | null>(null);
  const [query] = useQuery();
  const { state } = query;
  const isKnown = state === "failed" || state === "pending";
  const mayResend = useCanMakeCall()(RESEND);
  const verbs = actionsColumn((delivery: Delivery) => <ResendOne id={id} delivery={delivery} />);
  return (
    <Panel title="Deliveries">
      <Tabs
        label="Deliveries by state"
        current={STATES.find(([, name]) => name === (state ?? ""))?.[0] ?? "All"}
        tabs={STATES.map(([title, name]) => [
          title,
          hrefOf(["events", id], { ...query, state: name }),
        ])}
      />
      {isKnown && mayResend && <ResendAll id={id} state={state} />}
      <List
        name="Deliveries"
        call="GET /v1/webhooks/{id}/deliveries"
        filling={{ path: { id }, query: isKnown ? { state } : {} }}
        rowsOf={({ deliveries }) => deliveries}
        every={5000}
        height={240}
        columns={mayResend ? [...DELIVERY_COLUMNS, verbs] : DELIVERY_COLUMNS}
        open={setOpened}
        names={isKnown ? ["state"] : []}
        empty="Nothing has been sent yet. The next event appears here. Test events don't."
      />
      {opened && <Detail id={id} delivery={opened} onClose={() => setOpened(null)} />}
    </Panel>
  );
}

const STATES = [
  ["All", ""],
  ["Failed", "failed"],
  ["Waiting", "pending"],
] as const;

function useResend(
  id: string,
  body: { readonly delivery_id: string } | { readonly state: "failed" | "pending" },
) {
  const [queued, setQueued] = useState<number | null>(null);
  const { busy, failure, start } = useChange(
    () => change(RESEND, { path: { id }, body }, ["/v1/webhooks"]),
    (answer) => setQueued(answer.queued),
  );
  return { queued, busy, failure, start };
}

function ResendAll({ id, state }: { id: string; state: "failed" | "pending" }) {
  const { queued, busy, failure, start } = useResend(id, { state });
  return (
    <p class="actions">
      <Button
        text={state === "failed" ? "Resend all failed" : "Send all now"}
        disabled={busy}
        onClick={start}
      />
      {queued !== null && <span role="status">{countText(queued, "event")} queued.</span>}
      {failure && <FailureNotice failure={failure} />}
    </p>
  );
}

function ResendOne({ id, delivery }: { id: string; delivery: Delivery }) {
  const { queued, busy, failure, start } = useResend(id, { delivery_id: delivery.id });
  return (
    <Button
      text={queued === null ? "Resend" : "Resent"}
      class="quiet"
      disabled={busy}
      onClick={start}
      title={failure?.message}
    />
  );
}

type DetailProps = { id: string; delivery: Delivery; onClose: () => void };
function Detail({ id, delivery, onClose }: DetailProps) {
  const mayResend = useCanMakeCall()(RESEND);
  const { queued, busy, failure, start } = useResend(id, { delivery_id: delivery.id });
  const path = { id, delivery_id: delivery.id };
  const call = "GET /v1/webhooks/{id}/deliveries/{delivery_id}";
  const read = useRead(call, { path }, { every: 5000 });
  return (
    <Dialog title={delivery.type} onClose={onClose} wide>
      <ReadResult read={read} height={320}>
        {({ newest_attempts: attempts, headers, body, ...told }) => (
          <>
            <Facts
              facts={[
                ["State", <DeliveryState delivery={told} />],
                ["Attempts", told.attempts],
                ["Next attempt", <NextTry at={told.next_attempt_at} />],
                ["Event", <code>{told.event_id}</code>],
              ]}
            />
            {attempts.length > 0 && (
              <Grid name="Attempts" columns={ATTEMPTS} rows={attempts} keyOf={({ at }) => at} />
            )}
            <ResponseBody answer={attempts[0]?.answer ?? null} />
            {headers && <SentText title="Headers" text={linesOf(headers)} />}
            <SentText title="Body" text={body} />
          </>
        )}
      </ReadResult>
      {failure && <FailureNotice failure={failure} />}
      <div class="actions end">
        {queued !== null && <span role="status">Delivery queued.</span>}
        {mayResend && <Button text="Resend" class="primary" disabled={busy} onClick={start} />}
      </div>
    </Dialog>
  );
}

type Attempt = DeliveryDetail["newest_attempts"][number];
const ATTEMPTS: readonly Column<Attempt>[] = [
  timeColumn("at", "Attempt", ({ at }) => at),
  column("status", "Answer", responseStatusText),
  column("text", "Text", ({ answer }) => answer, {
    wide: true,
    cell: ({ answer }) => (answer ? <code title={answer}>{answer.slice(0, SHOWN_MAX)}</code> : ""),
  }),
  durationColumn("ms", "Duration", ({ duration_ms }) => duration_ms),
];
const SHOWN_MAX = 40;

const linesOf = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");

export function ResponseBody({ answer }: { answer: string | null }) {
  return answer ? <SentText title="Response body" text={answer} /> : null;
}

function SentText({ title, text }: { title: string; text: string }) {
  return (
    <>
      <h3>{title}</h3>
      <pre class="code" tabIndex={0} aria-label={title}>
        {text}
      </pre>
    </>
  );
}
