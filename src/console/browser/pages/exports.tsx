import { useState } from "preact/hooks";
import { buildUrl, createFailedOutcome, displayedOrganization, failureOf } from "../api/client.ts";
import type { CallOutcome } from "../api/client.ts";
import { DAY_MS, monthStart, utcDay } from "../lib/time.ts";
import { latestOf, useRead } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { useNow } from "../state/cell.ts";
import { canManageWebhooks, useSession } from "../state/session.ts";
import { PageHead, Panel } from "../ui/basics.tsx";
import { Action } from "../ui/dialog.tsx";
import { column, Grid } from "../ui/table.tsx";
import { downloadFile } from "../ui/export.tsx";
import { ReadResult } from "../ui/states.tsx";

const MONTHS_MAX = 24;
const FOCUS = "GET /v1/exports/focus";

export function Exports() {
  const who = useSession();
  const path = { org_id: who.organization?.id ?? "" };
  const since = latestOf(useRead("GET /v1/orgs/{org_id}", { path }))?.created_at;
  const today = utcDay(useNow());
  const read = useRead("GET /v1/exports", {}, { every: 60_000 });
  return (
    <>
      <PageHead
        title="Exports"
        text={
          <>
            All charges, credits, payments and taxes in the FOCUS format (CSV). For last month's
            sums per key, see{" "}
            <a href={hrefOf(["activity"], { split: "key", range: "last-month" })}>Activity</a>.
          </>
        }
      >
        {canManageWebhooks(who) && (
          <a href={hrefOf(["events"], { tab: "Webhooks" })}>Send events to your systems</a>
        )}
      </PageHead>
      <Panel title="Months" aside={<a href="/docs/use/usage#cost-export">What a file contains</a>}>
        <ReadResult read={read} height={200}>
          {({ complete_through }) => (
            <Grid
              name="Months"
              columns={columnsOf(complete_through ?? "")}
              rows={monthsOf(today, since?.slice(0, 7) ?? today.slice(0, 7))}
              keyOf={(month) => month}
            />
          )}
        </ReadResult>
      </Panel>
      <DayExport today={today} />
    </>
  );
}

function monthsOf(today: string, first: string): readonly string[] {
  const all = Array.from({ length: MONTHS_MAX }, (_, back) => monthStart(today, back).slice(0, 7));
  return all.filter((month) => month >= first);
}

function stateOf(lastDay: string, completeThrough: string): string {
  if (lastDay <= completeThrough) return "Final";
  return completeThrough === "" ? "Open" : `Final through ${completeThrough}`;
}

const columnsOf = (completeThrough: string) => [
  column<string>("month", "Month", (month) => month),
  column<string>("state", "State", (month) => {
    const last = utcDay(Date.parse(monthStart(`${month}-01`, -1)) - DAY_MS);
    return `${month}-01` > completeThrough ? "Open" : stateOf(last, completeThrough);
  }),
  column<string>("file", "File", () => null, {
    cell: (month) => <Download name={month} query={{ month }} />,
  }),
];

function DayExport({ today }: { today: string }) {
  const [day, setDay] = useState(today);
  return (
    <Panel title="One day">
      <p class="actions">
        <label class="day small">
          UTC day{" "}
          <input
            type="date"
            max={today}
            value={day}
            onInput={(event) => setDay(event.currentTarget.value)}
          />
        </label>
        {day !== "" && <Download name={day} query={{ day }} />}
      </p>
    </Panel>
  );
}

type ExportedPeriod = { month: string } | { day: string };
function Download({ name, query }: { name: string; query: ExportedPeriod }) {
  return (
    <Action
      tone="quiet"
      verb={`Download ${name}`}
      run={() => fetchExport(query)}
      onDone={(file) => downloadFile(`focus-${name}.csv`, file)}
    />
  );
}

async function fetchExport(query: ExportedPeriod): Promise<CallOutcome<Blob>> {
  const headers =
    displayedOrganization.id === null ? {} : { "x-organization": displayedOrganization.id };
  try {
    const response = await fetch(buildUrl(FOCUS, { query }), {
      headers,
      credentials: "same-origin",
    });
    if (response.ok) return { ok: true, value: await response.blob() };
    return { ok: false, failure: failureOf(response, await response.text()) };
  } catch {
    return createFailedOutcome("no_answer", "The download was interrupted. Try again.");
  }
}
