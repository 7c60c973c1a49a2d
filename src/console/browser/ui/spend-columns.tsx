import { formatPercent } from "../lib/money.ts";
import type { UsageMetric } from "../lib/spend.ts";
import { Money } from "./basics.tsx";
import { usd, column, countColumn, moneyColumn } from "./table.tsx";
import type { Column } from "./table.tsx";

type Spent = Readonly<Record<Extract<UsageMetric, "cost_micro" | "requests">, number>>;

export const SPEND_COLUMN: Column<Spent> = moneyColumn(
  "cost_micro",
  "Spend",
  ({ cost_micro }) => cost_micro,
  { csv: [["cost_usd", ({ cost_micro }) => usd(cost_micro)]] },
);

export function shareColumn(total: number): Column<Spent> {
  const share = ({ cost_micro }: Spent): number => (total === 0 ? 0 : cost_micro / total);
  return column("share", "Share", share, {
    align: "right",
    cell: (row) => formatPercent(share(row)),
  });
}

export const REQUESTS_COLUMN: Column<Spent> = countColumn(
  "requests",
  "Requests",
  ({ requests }) => requests,
  { wide: true },
);

export const AVERAGE_COST_COLUMN: Column<Spent> = column(
  "each",
  "Avg cost",
  ({ cost_micro, requests }) => (requests === 0 ? null : cost_micro / requests),
  {
    align: "right",
    wide: true,
    csv: [["avg_cost_usd", ({ cost_micro, requests }) => usd(cost_micro / Math.max(1, requests))]],
    cell: ({ cost_micro, requests }) =>
      requests === 0 ? "" : <Money micros={Math.ceil(cost_micro / requests)} />,
  },
);
