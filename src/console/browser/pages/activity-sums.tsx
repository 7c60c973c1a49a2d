import { formatPercent } from "../lib/money.ts";
import { sumMetric, sumUsageByGroup } from "../lib/spend.ts";
import { isCompleteSince } from "../lib/range.ts";
import { localAndUtcTime } from "../lib/time.ts";
import type { DayRow, UsageMetric, UsageGroupSum } from "../lib/spend.ts";
import { assignColors } from "../state/colors.ts";
import type { ApiCallName } from "../api/client.ts";
import { goTo, hrefOf, useQuery } from "../state/route.ts";
import { useCanMakeCall } from "../state/session.ts";
import { filterBy, parameterOf, titleOf } from "../state/activity.ts";
import { useGroupNames } from "../state/spend.ts";
import type { UsageRange, UsageGrouping, UsageReportRows } from "../state/spend.ts";
import { ModelName } from "../ui/basics.tsx";
import { Swatch } from "../ui/chart.tsx";
import {
  AVERAGE_COST_COLUMN,
  REQUESTS_COLUMN,
  SPEND_COLUMN,
  shareColumn,
} from "../ui/spend-columns.tsx";
import { Table, actionsColumn, usd, column, tokenColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

export function changeText(now: number, before: number): string {
  const share = (now - before) / before;
  return `${share < 0 ? "−" : "+"}${formatPercent(Math.abs(share))}`;
}

/** Notices about data too large for one read, or already deleted. */
export function MissingDataNotice({
  isCut,
  completeFrom,
  from,
}: Pick<UsageReportRows, "isCut" | "completeFrom"> & Pick<UsageRange, "from">) {
  return (
    <>
      {isCut && <p class="notice">▲ Not everything is shown. Choose fewer days.</p>}
      {!isCompleteSince(completeFrom, { from }) && (
        <p class="notice">
          ▲ Before {localAndUtcTime(completeFrom ?? "")} this detail is no longer stored.
        </p>
      )}
    </>
  );
}

type GroupTableProps = {
  name: string;
  rows: readonly DayRow[];
  before: readonly DayRow[] | undefined;
  by: UsageGrouping;
  drawn: ReadonlySet<string | null>;
};
export function GroupTable({ name, rows, before, by, drawn }: GroupTableProps) {
  const [query] = useQuery();
  const nameOfGroup = useGroupNames();
  const total = sumMetric(rows, "cost_micro");
  const sums = sumUsageByGroup(rows);
  const nameOf = (group: string | null): string => nameOfGroup(by, group);
  return (
    <Table
      name={name}
      columns={[
        groupColumn(by, drawn, nameOf),
        ...columnsOf(total, before && sumUsageByGroup(before)),
        ...limitColumn(by, useCanMakeCall()),
      ]}
      rows={sums}
      keyOf={({ group }) => group ?? ""}
      open={({ group }) => {
        if (group !== null) goTo(["activity"], { ...query, ...filterBy(by, group) });
      }}
      empty={null}
    />
  );
}

function tokens(id: UsageMetric, title: string): Column<UsageGroupSum> {
  const of = (row: UsageGroupSum): number => row[id];
  return tokenColumn(id, title, of, { wide: true, csv: [[id, of]] });
}

function groupColumn(
  by: UsageGrouping,
  drawn: ReadonlySet<string | null>,
  nameOf: (group: string | null) => string,
): Column<UsageGroupSum> {
  const colorOf = assignColors([...drawn]);
  return column("group", titleOf(by), ({ group }) => nameOf(group), {
    csv: [
      [parameterOf(by), ({ group }) => group],
      ...(by === "key" ? [["key", ({ group }: UsageGroupSum) => nameOf(group)] as const] : []),
    ],
    cell: ({ group }) => (
      <>
        {drawn.size > 0 && <Swatch slot={colorOf(group)} />}{" "}
        {by === "model" ? <ModelName id={nameOf(group)} /> : nameOf(group)}
      </>
    ),
  });
}

function limitColumn(
  by: UsageGrouping,
  may: (call: ApiCallName, isOwn: boolean) => boolean,
): readonly Column<UsageGroupSum>[] {
  if (by !== "key" && by !== "user") return [];
  const [call, page, text] = LIMIT_LINKS[by];
  if (!may(call, false)) return []; // the rows include other members' objects
  const actions = actionsColumn(
    ({ group }: UsageGroupSum) =>
      group !== null && <a href={hrefOf([page, group], { do: "quota" })}>{text}</a>,
  );
  return [{ ...actions, wide: true }];
}

const LIMIT_LINKS = {
  key: ["PATCH /v1/keys/{id}", "keys", "Limit"],
  user: ["PATCH /v1/users/{external_id}", "end-users", "Set quota"],
} as const;

function columnsOf(
  total: number,
  before: readonly UsageGroupSum[] | undefined,
): readonly Column<UsageGroupSum>[] {
  const earlier = new Map(before?.map(({ group, cost_micro }) => [group, cost_micro]));
  const wasOf = ({ group }: UsageGroupSum): number | null =>
    before ? (earlier.get(group) ?? 0) : null;
  return [
    SPEND_COLUMN,
    shareColumn(total),
    column("change", "Change", (row) => (before ? row.cost_micro - (wasOf(row) ?? 0) : null), {
      align: "right",
      wide: true,
      csv: [["cost_usd_before", (row) => usd(wasOf(row))]],
      cell: (row) => {
        const was = wasOf(row);
        const text = was ? changeText(row.cost_micro, was) : "new";
        return <span class="change">{was !== null && text}</span>;
      },
    }),
    REQUESTS_COLUMN,
    AVERAGE_COST_COLUMN,
    tokens("prompt_tokens", "Input tokens"),
    tokens("cached_tokens", "Cached tokens"),
    tokens("completion_tokens", "Output tokens"),
  ];
}
