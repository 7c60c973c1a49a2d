import { useState } from "preact/hooks";
import type { Event } from "../api/types.ts";
import { EVENT_TYPES } from "../lib/event-types.ts";
import { useCell } from "../state/cell.ts";
import { hrefOf, route, useQuery } from "../state/route.ts";
import { isManager, useSession } from "../state/session.ts";
import { useKeyNames } from "../state/spend.ts";
import { Badge, Head, Tabs, Time } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Choice, ClearFilters, Day } from "../ui/filters.tsx";
import { usePages } from "../ui/pages.ts";
import { Empty, Shown } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { WebhookDetail } from "./webhook-detail.tsx";
import { Webhooks } from "./webhooks.tsx";

const EVENTS = "Events";
const WEBHOOKS = "Webhooks";
const FILTERS = ["type", "from", "to"] as const;
/** What calls for somebody to act. */
const LOUD =
  /balance\.low|declined|needs_customer|reversed|paused|quota_reached|budget_reached|disabled|alert/;

/** What happened, who did it, to what; and where it is sent. */
export function Events() {
  const { path, query } = useCell(route);
  const tab = isManager(useSession()) && query["tab"] === WEBHOOKS ? WEBHOOKS : EVENTS;
  const [, id] = path;
  if (tab === WEBHOOKS && id !== undefined) return <WebhookDetail id={id} />;
  return tab === WEBHOOKS ? <Webhooks tabs={<EventTabs current={tab} />} /> : <EventList />;
}

function EventTabs({ current }: { current: string }) {
  const tabs = [
    [EVENTS, hrefOf(["events"])],
    [WEBHOOKS, hrefOf(["events"], { tab: WEBHOOKS })],
  ] as const;
  return isManager(useSession()) ? (
    <Tabs label="Events and webhooks" {...{ tabs, current }} />
  ) : null;
}

function EventList() {
  const [query] = useQuery();
  const [opened, setOpened] = useState<Event | null>(null);
  const nameOf = useNames();
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
      <EventTabs current={EVENTS} />
      <Shown read={page} height={480}>
        {() => (
          <Table
            name="Events"
            columns={columnsOf(nameOf)}
            rows={rows}
            keyOf={(event: Event) => event.id}
            open={setOpened}
            pager={pager}
            filters={
              <>
                <Choice name="type" label="Type" options={[["", "any type"], ...EVENT_TYPES]} />
                <Day name="from" />
                <Day name="to" />
                <ClearFilters names={FILTERS} />
              </>
            }
            empty={
              <Empty text="Nothing happened yet: credits, keys, members and alerts show here." />
            }
          />
        )}
      </Shown>
      {opened && <Detail event={opened} nameOf={nameOf} onClose={() => setOpened(null)} />}
    </>
  );
}

type NameOf = (id: string) => string;

/** What a key or the organisation is called; any other id as it is. */
function useNames(): NameOf {
  const { organization } = useSession();
  const nameOfKey = useKeyNames();
  return (id) => (id === organization?.id ? organization.name : nameOfKey(id));
}

/** Whom an event is about, as people know it: a member is removed with its id alone. */
function subjectName({ subject, data }: Event, nameOf: NameOf): string {
  return typeof data["email"] === "string" ? data["email"] : nameOf(subject);
}

function actorName({ actor }: Event, nameOf: NameOf): string {
  if (actor.id === null) return actor.kind;
  return `${actor.kind} ${actor.kind === "key" ? nameOf(actor.id) : actor.id}`;
}

function columnsOf(nameOf: NameOf): readonly Column<Event>[] {
  return [
    {
      id: "created",
      title: "When",
      value: ({ created_at }) => created_at,
      cell: ({ created_at }) => <Time at={created_at} withClock />,
    },
    {
      id: "type",
      title: "What",
      value: ({ type }) => type,
      cell: ({ type }) => <Badge tone={LOUD.test(type) ? "warn" : "plain"}>{type}</Badge>,
    },
    {
      id: "subject",
      title: "Subject",
      value: ({ subject }) => subject,
      cell: (event) => <span title={event.subject}>{subjectName(event, nameOf)}</span>,
    },
    {
      id: "actor",
      title: "Actor",
      wide: true,
      value: ({ actor }) => (actor.id === null ? actor.kind : `${actor.kind} ${actor.id}`),
      cell: (event) => <span title={event.actor.id ?? ""}>{actorName(event, nameOf)}</span>,
    },
  ];
}

function Detail({ event, nameOf, onClose }: { event: Event; nameOf: NameOf; onClose: () => void }) {
  return (
    <Dialog title={event.type} onClose={onClose} wide>
      <p>
        <Time at={event.created_at} /> by {actorName(event, nameOf)}: {subjectName(event, nameOf)}
      </p>
      <pre class="code">{JSON.stringify(event, null, 2)}</pre>
    </Dialog>
  );
}
