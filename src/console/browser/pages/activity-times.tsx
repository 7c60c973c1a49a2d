import { formatCount } from "../lib/money.ts";
import type { DayRow } from "../lib/spend.ts";
import { formatDuration } from "../lib/time.ts";
import { LATENCY, filterBy } from "../state/activity.ts";
import { goTo, useQuery } from "../state/route.ts";
import { useActivitySums, useGroupNames } from "../state/spend.ts";
import type { UsageFilter, Range, Split } from "../state/spend.ts";
import { REQUESTS_COLUMN, SPEND_COLUMN } from "../ui/spend-columns.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { headingOf, titleOf } from "./activity-sums.tsx";

export const perSecond = (rate: number): string => formatCount(Math.round(rate));

export function GroupTimes({ by, asked }: { by: Split; asked: Range & UsageFilter }) {
  const [query] = useQuery();
  const nameOf = useGroupNames();
  const read = useActivitySums({ ...asked, group_by: by, ...LATENCY });
  const group: Column<DayRow> = {
    id: "group",
    title: titleOf(by),
    value: (row) => nameOf(by, row.group),
    csv: [[headingOf(by), (row) => row.group]],
  };
  return (
    <ReadResult read={read} height={480}>
      {({ rows }) => (
        <Table
          name={`Times ${by}`}
          columns={[group, ...TIMES, REQUESTS_COLUMN, SPEND_COLUMN]}
          rows={rows.toSorted((a, b) => b.requests - a.requests)}
          keyOf={(row) => row.group ?? ""}
          open={(row) => {
            if (row.group !== null) goTo(["activity"], { ...query, ...filterBy(by, row.group) });
          }}
          empty={<Empty text="No requests in this period." />}
        />
      )}
    </ReadResult>
  );
}

function timeColumn(
  [id, title]: readonly [string, string],
  value: (row: DayRow) => number | null,
  show: (value: number) => string,
): Column<DayRow> {
  const cell = (row: DayRow): string => {
    const known = value(row);
    return known === null ? "" : show(known);
  };
  return { id, title, align: "right", value, csv: [[id, value]], cell };
}

const TIMES: readonly Column<DayRow>[] = [
  timeColumn(["ttft_p50_ms", "TTFT p50"], (row) => row.first_byte_ms?.p50 ?? null, formatDuration),
  timeColumn(["ttft_p99_ms", "TTFT p99"], (row) => row.first_byte_ms?.p99 ?? null, formatDuration),
  timeColumn(["tokens_per_s", "Tokens a second"], (row) => row.tokens_per_s ?? null, perSecond),
];
