import { useState } from "preact/hooks";
import type { Event } from "../api/types.ts";
import { storedValueText } from "../lib/changes.ts";
import { describeActor, describeEvent } from "../lib/event-sentence.ts";
import type { NameOf } from "../lib/event-sentence.ts";
import { EVENT_TYPES, HIGHLIGHTED_EVENT_TYPE_PATTERN } from "../lib/event-types.ts";
import { goTo, hrefOf, usePathSegments, useQuery } from "../state/route.ts";
import { useNames } from "../state/spend.ts";
import { canManageWebhooks, useSession } from "../state/session.ts";
import { Facts, PageHead, Time } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { ChoiceFilter, DayFilter } from "../ui/filters.tsx";
import { EVENTS, EventTabs, WEBHOOKS } from "../ui/event-tabs.tsx";
import { List } from "../ui/list.tsx";
import { column, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { LazyPage } from "../ui/states.tsx";
import type { LazyPart } from "../ui/states.tsx";

const FILTERS = ["type", "from", "to"] as const;

const WEBHOOK_PAGE: LazyPart = {
  load: async () => (await import("./webhook-pages.tsx")).WebhookPages,
};

export function Events() {
  const [query] = useQuery();
  const isThere = canManageWebhooks(useSession()) && query["tab"] === WEBHOOKS;
  return isThere ? <LazyPage page={WEBHOOK_PAGE} /> : <EventList />;
}

function EventList() {
  const [query] = useQuery();
  const [opened, setOpened] = useState<Event | null>(null);
  const [, id] = usePathSegments();
  const nameOf = useNames();
  const { type = "", from = "", to = "" } = query;
  const close = (): void => {
    setOpened(null);
    if (id !== undefined) goTo(["events"], query);
  };
  return (
    <>
      <PageHead title="Events" text="Alerts and changes of the last year, newest first." />
      <EventTabs current={EVENTS} />
      <List
        name="Events"
        call="GET /v1/events"
        filling={{ query: { type: type as Event["type"], from, to } }}
        rowsOf={({ events }) => events}
        every={10_000}
        columns={columnsOf(nameOf)}
        open={setOpened}
        names={FILTERS}
        filters={
          <>
            <ChoiceFilter name="type" label="Type" options={[["", "All types"], ...EVENT_TYPES]} />
            <DayFilter name="from" />
            <DayFilter name="to" />
          </>
        }
        empty="No events yet. Changes to credits, keys and members appear here, and so do alerts."
      >
        {(rows) => {
          const shown = opened ?? rows.find((event) => event.id === id);
          return shown && <Detail event={shown} nameOf={nameOf} onClose={close} />;
        }}
      </List>
    </>
  );
}

function pageOf({ type, subject }: Event): string | null {
  if (type.startsWith("key.")) return hrefOf(["keys", subject]);
  if (type.startsWith("end_user.")) return hrefOf(["end-users", subject]);
  if (type.startsWith("webhook.") && type !== "webhook.deleted") {
    return hrefOf(["events", subject], { tab: WEBHOOKS });
  }
  return null;
}

function columnsOf(nameOf: NameOf): readonly Column<Event>[] {
  return [
    timeColumn("created", "When", ({ created_at }) => created_at, { withClock: true }),
    column("what", "What", (event) => describeEvent(event, nameOf), {
      csv: [
        ["event_id", ({ id }) => id],
        ["type", ({ type }) => type],
        ["subject", ({ subject }) => subject],
        ["sentence", (event) => describeEvent(event, nameOf)],
      ],
      cell: (event) => (
        <>
          {HIGHLIGHTED_EVENT_TYPE_PATTERN.test(event.type) && (
            <span class="warn-text" aria-hidden="true">
              ▲{" "}
            </span>
          )}
          {describeEvent(event, nameOf)} <span class="small muted wide-only">{event.type}</span>
        </>
      ),
    }),
    column(
      "actor",
      "Actor",
      ({ actor }) => (actor.id === null ? actor.kind : `${actor.kind} ${actor.id}`),
      {
        wide: true,
        cell: ({ actor }) => <span title={actor.id ?? ""}>{describeActor(actor, nameOf)}</span>,
      },
    ),
  ];
}

function Detail({ event, nameOf, onClose }: { event: Event; nameOf: NameOf; onClose: () => void }) {
  const page = pageOf(event);
  const { changes } = event.data as { changes?: Readonly<Record<string, Change>> };
  return (
    <Dialog title={event.type} onClose={onClose} wide>
      <p class="said">{describeEvent(event, nameOf)}</p>
      <p>
        <Time at={event.created_at} /> by {describeActor(event.actor, nameOf)}.{" "}
        {page !== null && <a href={page}>See {nameOf(event.subject)}</a>}
      </p>
      {changes !== undefined && (
        <Facts
          facts={Object.entries(changes).map(([name, { from, to }]) => [
            name,
            `${storedValueText(from)} → ${storedValueText(to)}`,
          ])}
        />
      )}
      <details>
        <summary>As JSON</summary>
        <pre class="code" tabIndex={0} aria-label="The event as JSON">
          {JSON.stringify(event, null, 2)}
        </pre>
      </details>
    </Dialog>
  );
}

type Change = { readonly from?: unknown; readonly to?: unknown };
