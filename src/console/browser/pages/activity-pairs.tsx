import { sumOf } from "../lib/spend.ts";
import type { DayRow } from "../lib/spend.ts";
import { goTo, useQuery } from "../state/route.ts";
import { filterBy, pairOf } from "../state/activity.ts";
import { useActivitySums, useGroupNames } from "../state/spend.ts";
import type { UsageFilter, Range, Split } from "../state/spend.ts";
import { ModelName } from "../ui/basics.tsx";
import {
  AVERAGE_COST_COLUMN,
  REQUESTS_COLUMN,
  SPEND_COLUMN,
  shareColumn,
} from "../ui/spend-columns.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { MissingDataNotice, headingOf, titleOf } from "./activity-sums.tsx";

export function PairTable({
  by,
  second,
  asked,
}: {
  by: Split;
  second: Split;
  asked: Range & UsageFilter;
}) {
  const [query] = useQuery();
  const pair = pairOf(by, second);
  const read = useActivitySums(pair === null ? null : { ...asked, group_by: pair });
  const isTurned = pair !== `${by},${second}`;
  const nameOf = useGroupNames();
  const group = (row: DayRow, isFirst: boolean): string | null =>
    isFirst === isTurned ? (row.group2 ?? null) : row.group;
  const column = (split: Split, isFirst: boolean): Column<DayRow> => ({
    id: split,
    title: titleOf(split),
    value: (row) => nameOf(split, group(row, isFirst)),
    csv: [[headingOf(split), (row) => group(row, isFirst)]],
    cell: (row) => {
      const name = nameOf(split, group(row, isFirst));
      return split === "model" ? <ModelName id={name} /> : name;
    },
  });
  return (
    <ReadResult read={read} height={480}>
      {({ rows, ...gaps }) => (
        <>
          <MissingDataNotice {...gaps} from={asked.from} />
          <Table
            name={`Activity ${by} and ${second}`}
            columns={[
              column(by, true),
              column(second, false),
              SPEND_COLUMN,
              shareColumn(sumOf(rows, "cost_micro")),
              REQUESTS_COLUMN,
              AVERAGE_COST_COLUMN,
            ]}
            rows={rows.toSorted((a, b) => b.cost_micro - a.cost_micro)}
            keyOf={(row) => JSON.stringify([row.group, row.group2])}
            open={(row) => {
              const [first, other] = [group(row, true), group(row, false)];
              if (first === null || other === null) return; // requests without a group can't be filtered
              goTo(["activity"], { ...query, ...filterBy(by, first), ...filterBy(second, other) });
            }}
            empty={<Empty text="No requests in this period." />}
          />
        </>
      )}
    </ReadResult>
  );
}
