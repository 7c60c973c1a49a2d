import { percent } from "../lib/money.ts";
import { sumOf, summed } from "../lib/spend.ts";
import { exactly, hourStart } from "../lib/time.ts";
import type { DayRow, Metric, Sum } from "../lib/spend.ts";
import { colorsOf } from "../state/colors.ts";
import type { Call } from "../api/client.ts";
import { goTo, hrefOf, useQuery } from "../state/route.ts";
import { useMay } from "../state/session.ts";
import { filterBy } from "../state/activity.ts";
import { tagOf, useGroupNames } from "../state/spend.ts";
import type { Range, Splits, Whole } from "../state/spend.ts";
import { ModelName, Tokens } from "../ui/basics.tsx";
import { Swatch } from "../ui/chart.tsx";
import { AVERAGE, REQUESTS, SPEND, shareOf } from "../ui/spend-columns.tsx";
import { Table, usd } from "../ui/table.tsx";
import { column } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";

export function titleOf(split: Splits): string {
  return tagOf(split) ?? TITLES[split] ?? split;
}
const TITLES: Readonly<Record<string, string>> = {
  model: "Model",
  provider: "Provider",
  key: "Key",
  user: "End user",
  member: "Member",
};
export function headingOf(split: Splits): string {
  return tagOf(split) ?? IDS[split] ?? split;
}
const IDS: Readonly<Record<string, string>> = {
  model: "model",
  provider: "provider",
  key: "key_id",
  user: "external_id",
  member: "member_id",
};

export function changed(now: number, before: number): string {
  const share = (now - before) / before;
  return `${share < 0 ? "−" : "+"}${percent(Math.abs(share))}`;
}

/** Notices about missing data: too much for one read, or already deleted. */
export function Gaps({
  isCut,
  completeFrom,
  from,
}: Pick<Whole, "isCut" | "completeFrom"> & Pick<Range, "from">) {
  return (
    <>
      {isCut && <p class="notice">▲ Not everything is shown. Choose fewer days.</p>}
      {completeFrom !== null && Date.parse(completeFrom) > hourStart(from) && (
        <p class="notice">▲ Before {exactly(completeFrom)} this detail is no longer stored.</p>
      )}
    </>
  );
}

export function Sums({
  rows,
  before,
  by,
  drawn,
}: {
  rows: readonly DayRow[];
  before: readonly DayRow[] | undefined;
  by: Splits;
  drawn: ReadonlySet<string | null>;
}) {
  const [query] = useQuery();
  const nameOfGroup = useGroupNames();
  const total = sumOf(rows, "cost_micro");
  const sums = summed(rows);
  const nameOf = (group: string | null): string => nameOfGroup(by, group);
  return (
    <Table
      name={`Activity ${by}`}
      columns={[
        groupColumn(by, drawn, nameOf),
        ...columnsOf(total, before && summed(before)),
        ...limitColumn(by, useMay()),
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

function tokenColumn(id: Metric, title: string): Column<Sum> {
  return {
    id,
    title,
    align: "right",
    wide: true,
    value: (row) => row[id],
    csv: [[id, (row) => row[id]]],
    cell: (row) => <Tokens count={row[id]} />,
  };
}

function groupColumn(
  by: Splits,
  drawn: ReadonlySet<string | null>,
  nameOf: (group: string | null) => string,
): Column<Sum> {
  const colorOf = colorsOf([...drawn]);
  return column("group", titleOf(by), ({ group }) => nameOf(group), {
    csv: [
      [headingOf(by), ({ group }) => group],
      ...(by === "key" ? [["key", ({ group }: Sum) => nameOf(group)] as const] : []),
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
  by: Splits,
  may: (call: Call, isOwn: boolean) => boolean,
): readonly Column<Sum>[] {
  if (by !== "key" && by !== "user") return [];
  const [call, page, text] = LIMIT_LINKS[by];
  if (!may(call, false)) return []; // the rows include other members' objects
  const cell = ({ group }: Sum) =>
    group !== null && <a href={hrefOf([page, group], { do: "quota" })}>{text}</a>;
  return [{ id: "verbs", title: "To do", wide: true, value: () => null, csv: [], cell }];
}

const LIMIT_LINKS = {
  key: ["PATCH /v1/keys/{id}", "keys", "Limit"],
  user: ["PATCH /v1/users/{external_id}", "end-users", "Set quota"],
} as const;

function columnsOf(total: number, before: readonly Sum[] | undefined): readonly Column<Sum>[] {
  const earlier = new Map(before?.map(({ group, cost_micro }) => [group, cost_micro]));
  return [
    SPEND,
    shareOf(total),
    column("change", "Change", ({ group, cost_micro }) => cost_micro - (earlier.get(group) ?? 0), {
      align: "right",
      wide: true,
      csv: [["cost_usd_before", ({ group }) => usd(earlier.get(group) ?? 0)]],
      cell: ({ group, cost_micro }) => {
        const was = earlier.get(group) ?? 0;
        const text = was === 0 ? "new" : changed(cost_micro, was);
        return <span class="change">{before && text}</span>;
      },
    }),
    REQUESTS,
    AVERAGE,
    tokenColumn("prompt_tokens", "Input tokens"),
    tokenColumn("cached_tokens", "Cached tokens"),
    tokenColumn("completion_tokens", "Output tokens"),
  ];
}
