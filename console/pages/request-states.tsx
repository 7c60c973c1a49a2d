import { unused } from "../lib/spend.ts";
import type { DayRow } from "../lib/spend.ts";
import { grouped } from "../lib/money.ts";
import { DAY, daysBetween, hoursBetween, utcDay } from "../lib/time.ts";
import { beside, useRead } from "../state/reads.ts";
import { useQuery } from "../state/route.ts";
import { useMay } from "../state/session.ts";
import { useNow } from "../state/now.ts";
import { GroupChart } from "../ui/group-chart.tsx";
import { Shown } from "../ui/states.tsx";

const EVERY_MS = 30_000;
/** What each part is called, and the status that a click on it leaves. */
const PARTS = { Succeeded: "settled", "Failed or refused": "error" } as const;
/** Days are drawn by the hour up to so many. */
const HOURLY_MS = 3 * DAY;

/** Above all requests: how many succeeded and how many did not, by hour or day; a part of it is clicked. */
export function RequestStates() {
  const [query, update] = useQuery();
  const now = useNow();
  const { from = utcDay(now), to = utcDay(now), model, key_id, external_id } = query;
  const isHourly = Date.parse(to) - Date.parse(from) < HOURLY_MS;
  const mayCount = useMay()("GET /v1/usage");
  const group_by = isHourly ? ("hour" as const) : ("day" as const);
  const only = Object.fromEntries(
    Object.entries({ model, key_id, external_id }).filter(([, one]) => one !== undefined),
  );
  const asked = { from, to, ...only };
  const good = beside(
    useRead(
      mayCount ? "GET /v1/usage" : null,
      { query: { ...asked, group_by } },
      { every: EVERY_MS },
    ),
  );
  const keyed = key_id === undefined ? {} : { key_id };
  const bad = useRead(
    "GET /v1/errors",
    { query: { from, to, group_by: "hour", ...keyed } },
    { every: EVERY_MS },
  );
  const parts = isHourly ? hoursBetween(from, to, now) : daysBetween(from, to);
  const length = parts[0]?.length ?? 10;
  return (
    <Shown read={bad} height={304}>
      {({ data }) => {
        const rows: readonly DayRow[] = [
          ...(good?.data ?? []).map(({ hour, group, requests }) =>
            rowOf(hour ?? group ?? "", "Succeeded", requests),
          ),
          ...data.map(({ hour = "", count }) =>
            rowOf(hour.slice(0, length), "Failed or refused", count),
          ),
        ];
        return (
          <GroupChart
            name="Requests by status"
            rows={rows}
            parts={parts}
            metric="requests"
            labelOf={(group) => group ?? ""}
            show={grouped}
            onSelect={(first, last, group) => {
              const status = PARTS[group as keyof typeof PARTS];
              const days = { from: first.slice(0, 10), to: last.slice(0, 10) };
              update({ ...days, ...(status !== undefined && { status }) });
            }}
          />
        );
      }}
    </Shown>
  );
}

function rowOf(day: string, group: keyof typeof PARTS, requests: number): DayRow {
  return { day, group, ...unused(requests) };
}
