import { useState } from "preact/hooks";
import type { Calls } from "../api/types.ts";
import { describeOperatorCall } from "../lib/operator-acts.ts";
import { dayAfter } from "../lib/time.ts";
import { hrefOf, useQuery } from "../state/route.ts";
import { Facts, PageHead, Time } from "../ui/basics.tsx";
import { column, timeColumn } from "../ui/table.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { DayFilter, TextFilter } from "../ui/filters.tsx";
import { List } from "../ui/list.tsx";
import type { Column } from "../ui/table.tsx";

const CALL = "GET /admin/v1/events";
type Act = Calls[typeof CALL]["answer"]["events"][number];
const NAMES = ["operator", "org", "from", "to"];

export function Acts() {
  const [query] = useQuery();
  const [opened, setOpened] = useState<Act | null>(null);
  const { operator = "", org = "", from = "", to = "" } = query;
  return (
    <>
      <PageHead title="Events" text="Changes by operators in the last year, newest first." />
      <List
        name="Events"
        call={CALL}
        filling={{ query: { operator, org, from, to: dayAfter(to) } }}
        every={60_000}
        rowsOf={({ events }) => events}
        columns={COLUMNS}
        open={setOpened}
        names={NAMES}
        filters={
          <>
            <TextFilter name="operator" label="Operator's name" />
            <TextFilter name="org" label="Customer" />
            <DayFilter name="from" />
            <DayFilter name="to" />
          </>
        }
        empty="No events yet. Changes by operators appear here."
      />
      {opened && <Detail act={opened} onClose={() => setOpened(null)} />}
    </>
  );
}

const COLUMNS: readonly Column<Act>[] = [
  timeColumn("time", "Time", ({ created_at }) => created_at, { withClock: true }),
  column("sentence", "Event", (act: Act) => describeOperatorCall(act), {
    csv: [
      ["event_id", ({ id }) => id],
      ["operator", ({ operator }) => operator],
      ["act", ({ act }) => act],
      ["organization", ({ organization }) => organization?.id ?? null],
      ["sentence", describeOperatorCall],
      ["request_id", ({ request_id }) => request_id],
    ],
  }),
];

function Detail({ act, onClose }: { act: Act; onClose: () => void }) {
  const { organization, target } = act;
  return (
    <Dialog title="Event" onClose={onClose} wide>
      <p class="said">{describeOperatorCall(act)}</p>
      <Facts
        facts={[
          ["Time", <Time at={act.created_at} />],
          ["Call", <code>{act.act}</code>],
          [
            "Customer",
            organization && (
              <a href={hrefOf(["organizations", organization.id])}>
                {organization.slug ?? organization.id}
              </a>
            ),
          ],
          ["Changed object", act.target_name],
          ...Object.entries(target).map(
            ([name, id]) => [name, <code key={name}>{id}</code>] as const,
          ),
          ["Request", <code>{act.request_id}</code>],
        ]}
      />
    </Dialog>
  );
}
