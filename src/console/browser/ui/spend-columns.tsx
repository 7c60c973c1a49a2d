import { percent } from "../lib/money.ts";
import type { Metric } from "../lib/spend.ts";
import { Count, Money } from "./basics.tsx";
import { usd } from "./table.tsx";
import type { Column } from "./table.tsx";

type Spent = Readonly<Record<Extract<Metric, "cost_micro" | "requests">, number>>;

/** Each group's charges. */
export const SPEND: Column<Spent> = {
  id: "cost_micro",
  title: "Spend",
  align: "right",
  value: ({ cost_micro }) => cost_micro,
  csv: [["cost_usd", ({ cost_micro }) => usd(cost_micro)]],
  cell: ({ cost_micro }) => <Money micros={cost_micro} />,
};

/** Its share of all charges. */
export function shareOf(total: number): Column<Spent> {
  const share = ({ cost_micro }: Spent): number => (total === 0 ? 0 : cost_micro / total);
  return {
    id: "share",
    title: "Share",
    align: "right",
    value: share,
    cell: (row) => percent(share(row)),
  };
}

export const REQUESTS: Column<Spent> = {
  id: "requests",
  title: "Requests",
  align: "right",
  wide: true,
  value: ({ requests }) => requests,
  cell: ({ requests }) => <Count count={requests} />,
};

/** The average cost of a request. */
export const AVERAGE: Column<Spent> = {
  id: "each",
  title: "Avg cost",
  align: "right",
  wide: true,
  value: ({ cost_micro, requests }) => (requests === 0 ? null : cost_micro / requests),
  csv: [["avg_cost_usd", ({ cost_micro, requests }) => usd(cost_micro / Math.max(1, requests))]],
  cell: ({ cost_micro, requests }) =>
    requests === 0 ? "" : <Money micros={Math.ceil(cost_micro / requests)} />,
};
