import type { ComponentChildren } from "preact";
import { sumOf, sumByGroup } from "../lib/spend.ts";
import type { GroupSum } from "../lib/spend.ts";
import { daysOf, rangeOf } from "../lib/range.ts";
import { goTo, hrefOf, useQuery } from "../state/route.ts";
import { isSenior, useMay, useSession } from "../state/session.ts";
import { useSpendByGroup } from "../state/spend.ts";
import { useNow } from "../state/now.ts";
import { ChoiceFilter } from "../ui/filters.tsx";
import { REQUESTS_COLUMN, SPEND_COLUMN, shareColumn } from "../ui/spend-columns.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import { column } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";

const PERIODS = [
  ["", "as created"],
  ["1", "spent today"],
  ["yesterday", "spent yesterday"],
  ["7", "spent in 7 days"],
  ["month", "spent this month"],
  ["30", "spent in 30 days"],
] as const;

export function Period() {
  return isSenior(useSession()) ? (
    <ChoiceFilter name="spent" label="Order" options={PERIODS} />
  ) : null;
}

export function Spenders({ period, filters }: { period: string; filters: ComponentChildren }) {
  const [query] = useQuery();
  const range = daysOf(rangeOf({ range: period }, useNow()));
  const read = useSpendByGroup("user", range);
  const mayCap = useMay()("PATCH /v1/users/{external_id}");
  return (
    <ReadResult read={read} height={480}>
      {({ rows }) => (
        <Table
          name="End users by spend"
          columns={columnsOf(sumOf(rows, "cost_micro"), mayCap)}
          rows={sumByGroup(rows).filter(({ group }) => group !== null)}
          keyOf={({ group }) => group ?? ""}
          open={({ group }) => goTo(["end-users", group ?? ""], query)}
          filters={filters}
          empty={<Empty text="No end-user spend in this period." />}
        />
      )}
    </ReadResult>
  );
}

function columnsOf(total: number, mayCap: boolean): readonly Column<GroupSum>[] {
  return [
    column("external_id", "End user ID", ({ group }) => group, {
      csv: [["external_id", ({ group }) => group]],
      cell: ({ group }) => <strong class="break">{group}</strong>,
    }),
    SPEND_COLUMN,
    shareColumn(total),
    { ...REQUESTS_COLUMN, wide: false },
    ...(mayCap
      ? [
          column("do", "To do", () => null, {
            csv: [],
            cell: (row: GroupSum) => <SetQuota {...row} />,
          }),
        ]
      : []),
  ];
}

function SetQuota({ group }: GroupSum) {
  const [query] = useQuery();
  return <a href={hrefOf(["end-users", group ?? ""], { ...query, do: "quota" })}>Set quota</a>;
}
