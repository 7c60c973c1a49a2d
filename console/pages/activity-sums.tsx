import { percent } from "../lib/money.ts";
import { sumOf, summed } from "../lib/spend.ts";
import type { DayRow, Metric, Sum } from "../lib/spend.ts";
import { colorsOf } from "../state/colors.ts";
import { goTo, hrefOf, useQuery } from "../state/route.ts";
import { useKeyNames } from "../state/spend.ts";
import type { Splits } from "../state/spend.ts";
import { Count, ModelName, Money, Tokens } from "../ui/basics.tsx";
import { Swatch } from "../ui/chart.tsx";
import { Table, usd } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

/** How requests without one are named. */
export const NO_USER = "without an end user";

/** By how much: `+12 %`. */
export function changed(now: number, before: number): string {
  const share = (now - before) / before;
  return `${share < 0 ? "−" : "+"}${percent(Math.abs(share))}`;
}

/** What each group came to; a row is looked at alone. */
export function Sums({
  rows,
  before,
  by,
  drawn,
}: {
  rows: readonly DayRow[];
  /** Of the period before; undefined: not read yet. */
  before: readonly DayRow[] | undefined;
  by: Splits;
  drawn: ReadonlySet<string | null>;
}) {
  const [query] = useQuery();
  const nameOfKey = useKeyNames();
  const total = sumOf(rows, "cost_micro");
  const sums = summed(rows);
  const nameOf = (group: string | null): string =>
    by === "key" ? nameOfKey(group) : (group ?? NO_USER);
  return (
    <Table
      name={`Activity ${by}`}
      columns={[
        groupColumn(by, drawn, nameOf),
        ...columnsOf(total, before && summed(before)),
        verbs(by),
      ]}
      rows={sums}
      keyOf={({ group }) => group ?? ""}
      open={({ group }) => {
        if (group !== null) goTo(["activity"], { ...query, [by]: group });
      }}
      empty={null}
    />
  );
}

function tokens(id: Metric, title: string): Column<Sum> {
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
  return {
    id: "group",
    title: { model: "Model", provider: "Provider", key: "Key", user: "End user" }[by],
    value: ({ group }) => nameOf(group),
    csv: [
      [
        { model: "model", provider: "provider", key: "key_id", user: "external_id" }[by],
        ({ group }) => group,
      ],
      ...(by === "key" ? [["key", ({ group }: Sum) => nameOf(group)] as const] : []),
    ],
    cell: ({ group }) => (
      <>
        {drawn.size > 0 && <Swatch slot={colorOf(group)} />}{" "}
        {by === "model" ? <ModelName id={nameOf(group)} /> : nameOf(group)}
      </>
    ),
  };
}

/** What stops a row's spending, and what it asked. */
function verbs(by: Splits): Column<Sum> {
  const pages = { key: ["keys", "Limit"], user: ["end-users", "Set quota"] } as const;
  return {
    id: "verbs",
    title: "To do",
    wide: true,
    value: () => null,
    csv: [],
    cell: ({ group }) => {
      if (group === null || by === "model" || by === "provider") return "";
      const [page, verb] = pages[by];
      return (
        <a
          href={hrefOf([page, group], by === "user" ? { do: "quota" } : {})}
          onClick={(event) => event.stopPropagation()}
        >
          {verb}
        </a>
      );
    },
  };
}

function columnsOf(total: number, before: readonly Sum[] | undefined): readonly Column<Sum>[] {
  const earlier = new Map(before?.map(({ group, cost_micro }) => [group, cost_micro]));
  return [
    {
      id: "cost_micro",
      title: "Spend",
      align: "right",
      value: ({ cost_micro }) => cost_micro,
      csv: [["cost_usd", ({ cost_micro }) => usd(cost_micro)]],
      cell: ({ cost_micro }) => <Money micros={cost_micro} />,
    },
    {
      id: "share",
      title: "Share",
      align: "right",
      value: ({ cost_micro }) => (total === 0 ? 0 : cost_micro / total),
      cell: ({ cost_micro }) => percent(total === 0 ? 0 : cost_micro / total),
    },
    {
      id: "change",
      title: "Change",
      align: "right",
      wide: true,
      value: ({ group, cost_micro }) => cost_micro - (earlier.get(group) ?? 0),
      csv: [["cost_usd_before", ({ group }) => usd(earlier.get(group) ?? 0)]],
      cell: ({ group, cost_micro }) => {
        const was = earlier.get(group) ?? 0;
        const text = was === 0 ? "new" : changed(cost_micro, was);
        return <span class="change">{before && text}</span>;
      },
    },
    {
      id: "requests",
      title: "Requests",
      align: "right",
      wide: true,
      value: ({ requests }) => requests,
      cell: ({ requests }) => <Count count={requests} />,
    },
    {
      id: "each",
      title: "Avg cost",
      align: "right",
      wide: true,
      value: ({ cost_micro, requests }) => (requests === 0 ? null : cost_micro / requests),
      csv: [
        ["avg_cost_usd", ({ cost_micro, requests }) => usd(cost_micro / Math.max(1, requests))],
      ],
      cell: ({ cost_micro, requests }) =>
        requests === 0 ? "" : <Money micros={Math.ceil(cost_micro / requests)} />,
    },
    tokens("prompt_tokens", "Input tokens"),
    tokens("cached_tokens", "Cached tokens"),
    tokens("completion_tokens", "Output tokens"),
  ];
}
