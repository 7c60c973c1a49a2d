import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Margin } from "../api/types.ts";
import type { CallOutcome } from "../api/client.ts";
import { countText, formatCount, formatPercent } from "../lib/money.ts";
import { roundRangeToDays, readRange } from "../lib/range.ts";
import { localAndUtcTime } from "../lib/time.ts";
import { change, readPages, useCustomRead } from "../state/reads.ts";
import { hrefOf, useQuery } from "../state/route.ts";
import { useCanMakeCall } from "../state/session.ts";
import { PageHead, Money, Tabs, Button } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { FormDialog, DOLLAR_FIELD, useTyped } from "../ui/dialog.tsx";
import { ChoiceFilter } from "../ui/filters.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table, usd, column, countColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { Prices } from "./prices.tsx";

type Row = Margin["data"][number];
type MarginSplit = Margin["by"];

const SPLITS = [
  ["provider", "by provider"],
  ["model", "by model"],
  ["organization", "by customer"],
] as const;
const ROWS = [
  ["", "whole period"],
  ["day", "each day"],
] as const;
const PERIODS = [
  ["7", "7 days"],
  ["yesterday", "yesterday"],
  ["1", "today"],
  ["month", "this month"],
  ["last-month", "last month"],
  ["30", "30 days"],
] as const;
const PAGES_MAX = 20;
const PRICES = "Prices";

export function Business() {
  const [query] = useQuery();
  const tab = query["tab"] === PRICES ? PRICES : "Margin";
  const tabs = (
    <Tabs
      label="Margin and prices"
      current={tab}
      tabs={[
        ["Margin", hrefOf(["business"])],
        [PRICES, hrefOf(["business"], { tab: PRICES })],
      ]}
    />
  );
  return tab === PRICES ? <Prices tabs={tabs} /> : <MarginPage tabs={tabs} />;
}

function MarginPage({ tabs }: { tabs: ComponentChildren }) {
  const may = useCanMakeCall();
  const [query] = useQuery();
  const [isImporting, setImporting] = useState(false);
  const by = SPLITS.find(([name]) => name === query["by"])?.[0] ?? "provider";
  const isDaily = query["rows"] === "day";
  const range = roundRangeToDays(readRange({ range: query["range"] ?? "7" }, useNow()));
  const read = useCustomRead(`margin ${by} ${range.from} ${range.to}`, () =>
    readAllMargin({ ...range, by }),
  );
  return (
    <>
      <PageHead title="Business" text="Charges, known costs and margin of all customers.">
        {may("POST /admin/v1/costs") && (
          <Button text="Import provider bill…" onClick={() => setImporting(true)} />
        )}
      </PageHead>
      {tabs}
      <ReadResult read={read} height={480}>
        {({ data, complete_from, missing }) => (
          <>
            <Sum rows={data} />
            {Date.parse(complete_from) > Date.parse(range.from) && (
              <p class="notice">
                ▲ Requests before {localAndUtcTime(complete_from)} are not included.
              </p>
            )}
            {missing.length > 0 && (
              <p class="notice">▲ These customers are missing: {missing.join(", ")}.</p>
            )}
            <Table
              name="Margin"
              columns={columnsOf(by, isDaily)}
              rows={isDaily ? data : sumByName(data, ({ group }) => group)}
              keyOf={({ day, group }) => `${day} ${group}`}
              filters={
                <>
                  <ChoiceFilter name="range" label="Range" options={PERIODS} />
                  <ChoiceFilter name="by" label="Split" options={SPLITS} />
                  <ChoiceFilter name="rows" label="Rows" options={ROWS} />
                </>
              }
              empty={<Empty text="No charges in this period." />}
            />
          </>
        )}
      </ReadResult>
      {isImporting && <EnterBill onClose={() => setImporting(false)} />}
    </>
  );
}

async function readAllMargin(query: {
  readonly from: string;
  readonly to: string;
  readonly by: MarginSplit;
}): Promise<CallOutcome<Pick<Margin, "data" | "complete_from" | "missing">>> {
  const read = await readPages("GET /admin/v1/margin", query, PAGES_MAX);
  if (!read.ok) return read;
  const { pages } = read.value;
  const rows = pages.flatMap(({ data }) => data);
  return {
    ok: true,
    value: {
      data: sumByName(rows, ({ day, group }) => `${day} ${group}`),
      complete_from:
        pages
          .map((page) => page.complete_from)
          .toSorted()
          .at(-1) ?? "",
      missing: pages.flatMap((page) => page.missing),
    },
  };
}

const SUMMED = [
  "requests",
  "charged_micro",
  "bought_micro",
  "margin_micro",
  "unknown_requests",
] as const;

/** Sums rows with the same name, in the order of their first rows. */
function sumByName(rows: readonly Row[], nameOf: (row: Row) => string): readonly Row[] {
  const sums = new Map<string, Row>();
  for (const row of rows) sums.set(nameOf(row), addRow(sums.get(nameOf(row)), row));
  return [...sums.values()];
}

function addRow(sum: Row | undefined, row: Row): Row {
  if (sum === undefined) return row;
  const sums = SUMMED.map((name) => [name, sum[name] + row[name]] as const);
  return {
    ...row,
    ...Object.fromEntries(sums),
    billed_micro: addBilled(sum.billed_micro, row.billed_micro),
    difference_micro: addBilled(sum.difference_micro, row.difference_micro),
  };
}

/** Adds two billed amounts. Null: no bill was imported. */
function addBilled(one: number | null, other: number | null): number | null {
  return one === null && other === null ? null : (one ?? 0) + (other ?? 0);
}

function Sum({ rows }: { rows: readonly Row[] }) {
  const of = (name: (typeof SUMMED)[number]): number =>
    rows.reduce((sum, row) => sum + row[name], 0);
  const charged = of("charged_micro");
  const unknown = of("unknown_requests");
  if (unknown > 0) {
    return (
      <p class="notice">
        ▲ Charged <Money micros={charged} />, known cost <Money micros={of("bought_micro")} />. The
        margin is unknown: {formatCount(unknown)} of {countText(of("requests"), "request")} (
        {formatPercent(unknown / of("requests"))}) have no known cost.{" "}
        <a href="/docs/run/prices#what-a-request-costs-you">How to enter costs</a>
      </p>
    );
  }
  return (
    <p>
      Charged <Money micros={charged} />, cost <Money micros={of("bought_micro")} />, margin{" "}
      <strong>
        <Money micros={of("margin_micro")} kind="left" />
      </strong>
      {charged > 0 && ` (${formatPercent(of("margin_micro") / charged)})`}
    </p>
  );
}

function amount(
  id: "charged_micro" | "bought_micro" | "margin_micro" | "billed_micro" | "difference_micro",
  title: string,
): Column<Row> {
  return {
    id,
    title,
    align: "right",
    wide: id === "billed_micro" || id === "difference_micro",
    value: (row) => row[id],
    csv: [[id.replace("_micro", "_usd"), (row) => usd(row[id])]],
    cell: (row) => {
      const micros = row[id];
      if (id === "margin_micro" && row.unknown_requests > 0) return "Unknown";
      if (id === "bought_micro" && row.unknown_requests === row.requests) return "Unknown";
      return micros === null ? (
        ""
      ) : (
        <Money micros={micros} kind={id === "margin_micro" ? "left" : "spent"} />
      );
    },
  };
}

function columnsOf(by: MarginSplit, isDaily: boolean): readonly Column<Row>[] {
  const title = { provider: "Provider", model: "Model", organization: "Customer" }[by];
  return [
    ...(isDaily ? [column("day", "Day", ({ day }: Row) => day)] : []),
    { id: "group", title, value: ({ group }) => group },
    countColumn("requests", "Requests", ({ requests }) => requests),
    amount("charged_micro", "Charged"),
    amount("bought_micro", "Cost"),
    amount("margin_micro", "Margin"),
    column("unknown", "Cost unknown", ({ unknown_requests }) => unknown_requests, {
      align: "right",
      wide: true,
    }),
    ...(by === "provider"
      ? [amount("billed_micro", "Billed"), amount("difference_micro", "Difference")]
      : []),
  ];
}

function EnterBill({ onClose }: { onClose: () => void }) {
  const [typed, line] = useTyped({ provider: "", day: "", dollars: "" });
  return (
    <FormDialog
      title="Import a provider's bill"
      verb="Import bill"
      run={() => {
        const row = { ...typed, provider: typed.provider.trim(), dollars: Number(typed.dollars) };
        return change("POST /admin/v1/costs", { body: { rows: [row] } }, []);
      }}
      onDone={() => location.reload()}
      onClose={onClose}
    >
      {line("provider", "Provider", { required: true })}
      {line("day", "Day, UTC", { type: "date", required: true })}
      {line("dollars", "Billed amount [$]", { ...DOLLAR_FIELD, required: true })}
    </FormDialog>
  );
}
