import { useState } from "preact/hooks";
import type { Event } from "../api/types.ts";
import { useQuery } from "../state/route.ts";
import { Badge, Head, Time } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Choice, ClearFilters, Day } from "../ui/filters.tsx";
import { usePages } from "../ui/pages.ts";
import { Empty, Failed, Skeleton } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

const FILTERS = ["type", "from", "to"] as const;
/** What calls for somebody to act. */
const LOUD = /balance\.low|quota_reached|budget_reached|disabled|alert/;

const TYPES = [
  "balance.credited",
  "balance.low",
  "end_user.alert",
  "end_user.quota_reached",
  "key.created",
  "key.changed",
  "key.rotated",
  "key.revoked",
  "key.expiring",
  "key.budget_reached",
  "session.ended",
  "member.created",
  "member.changed",
  "member.removed",
  "settings.changed",
  "organization.changed",
  "webhook.disabled",
].map((type) => [type, type.replace(".", ": ").replaceAll("_", " ")] as const);

/** What happened, who did it, to what. */
export function Events() {
  const [query] = useQuery();
  const [opened, setOpened] = useState<Event | null>(null);
  const { type, from, to } = query;
  const chosen = {
    ...(type && { type: type as Event["type"] }),
    ...(from && { from }),
    ...(to && { to }),
  };
  const { page, rows, pager } = usePages(
    "GET /v1/events",
    { query: chosen },
    {
      cursor: "after",
      read: ({ events, next_after }) => ({ rows: events, next: next_after }),
      isFiltered: FILTERS.some((name) => query[name] !== undefined),
      every: 10_000,
    },
  );
  return (
    <>
      <Head title="Events" text="Alerts and every change, newest first, kept for a year." />
      {page.data === undefined && page.failure === undefined && <Skeleton height={480} />}
      {page.data === undefined && page.failure && (
        <Failed failure={page.failure} again={page.again} />
      )}
      {page.data !== undefined && (
        <Table
          name="Events"
          columns={COLUMNS}
          rows={rows}
          keyOf={(event: Event) => event.id}
          open={setOpened}
          pager={pager}
          filters={
            <>
              <Choice name="type" label="Type" options={[["", "any type"], ...TYPES]} />
              <Day name="from" label="From day, UTC" />
              <Day name="to" label="To day, UTC" />
              <ClearFilters names={FILTERS} />
            </>
          }
          empty={
            <Empty text="Nothing happened yet: credits, keys, members and alerts show here." />
          }
        />
      )}
      {opened && <Detail event={opened} onClose={() => setOpened(null)} />}
    </>
  );
}

const COLUMNS: readonly Column<Event>[] = [
  {
    id: "created",
    title: "When",
    value: ({ created_at }) => created_at,
    cell: ({ created_at }) => <Time at={created_at} />,
  },
  {
    id: "type",
    title: "What",
    value: ({ type }) => type,
    cell: ({ type }) => <Badge tone={LOUD.test(type) ? "warn" : "plain"}>{type}</Badge>,
  },
  { id: "subject", title: "Of", value: ({ subject }) => subjectText(subject) },
  {
    id: "actor",
    title: "By",
    value: ({ actor }) => (actor.id === null ? actor.kind : `${actor.kind} ${actor.id}`),
  },
];

function subjectText(subject: unknown): string {
  if (typeof subject === "string") return subject;
  if (typeof subject !== "object" || subject === null) return "";
  return Object.values(subject).join(" ");
}

function Detail({ event, onClose }: { event: Event; onClose: () => void }) {
  return (
    <Dialog title={event.type} onClose={onClose} wide>
      <p>
        <Time at={event.created_at} /> by {event.actor.kind} {event.actor.id}
      </p>
      <pre class="code">{JSON.stringify(event, null, 2)}</pre>
    </Dialog>
  );
}
