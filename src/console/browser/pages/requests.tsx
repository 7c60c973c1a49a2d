import type { Hold, Generation } from "../api/types.ts";
import { formatCount } from "../lib/money.ts";
import { errorDays } from "../lib/range.ts";
import { formatDurationInWholeUnits, localAndUtcTime } from "../lib/time.ts";
import { latestOf, useRead } from "../state/reads.ts";
import { goTo, hrefOf, usePathSegments, useQuery } from "../state/route.ts";
import { useKeyNames } from "../state/spend.ts";
import { PageHead, Money, Tabs, Button } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { ChoiceFilter, ClearFilters, DayFilter, TextFilter } from "../ui/filters.tsx";
import { ModelFilter } from "../ui/model-picker.tsx";
import { usePages } from "../ui/list.tsx";
import { purposeText, requestColumns } from "../ui/request-table.tsx";
import { Empty, FirstSteps, ReadResult, LazyPage } from "../ui/states.tsx";
import type { LazyPart } from "../ui/states.tsx";
import { Grid, Table, codeColumn, column, moneyColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { Receipt } from "./receipt.tsx";
import type { NeighborIds } from "./receipt.tsx";
import { useRef, useState } from "preact/hooks";

const FILTERS = [
  "model",
  "provider",
  "key_id",
  "external_id",
  "tag",
  "status",
  "code",
  "from",
  "to",
] as const;
const TABS = [
  ["All", ""],
  ["Succeeded", "settled"],
  ["Errors", "error"],
  ["Rejected", "refused"],
  ["Running", "held"],
] as const;

/** The API's statuses for tabs that separate charged failures from successes. */
const OUTCOMES: Readonly<Record<string, string>> = { settled: "succeeded", error: "failed" };

const CHARTS: LazyPart = { load: async () => (await import("./request-charts.tsx")).RequestChart };

export function Requests() {
  const path = usePathSegments();
  const [query] = useQuery();
  const nameOfKey = useKeyNames();
  const now = useNow();
  const chosen = Object.fromEntries(FILTERS.map((name) => [name, query[name]]));
  if (query["status"] === "error") Object.assign(chosen, errorDays(query, now));
  chosen["status"] = OUTCOMES[query["status"] ?? ""] ?? query["status"];
  const isFiltered = FILTERS.some((name) => query[name] !== undefined);
  const { page, rows, pager } = usePages(
    "GET /v1/generations",
    { query: chosen },
    {
      rowsOf: ({ generations }) => generations,
      isFiltered,
      every: 5000,
    },
  );
  const [, id] = path;
  const steady = useSteadyRows(rows, JSON.stringify([chosen, pager.label.split(" ")[0]]));
  const { waiting, showWaiting: letIn } = steady;
  return (
    <>
      <PageHead
        title="Requests"
        text="Newest first. A rejected request never started and is free. A failed request started but didn't complete."
      />
      <Tabs
        label="Requests by status"
        current={TABS.find(([, status]) => status === (query["status"] ?? ""))?.[0] ?? ""}
        tabs={TABS.map(([title, status]) => [
          title,
          hrefOf(["requests"], { ...query, status, code: "" }),
        ])}
      />
      {/* The API's counts don't tell rejected requests from failed ones. */}
      {["", "error"].includes(query["status"] ?? "") && <LazyPage page={CHARTS} height={340} />}
      {query["status"] === "held" && <OpenHolds />}
      <ReadResult read={page} height={480}>
        {() => (
          <div {...steady.watch}>
            {waiting > 0 && (
              <p class="center">
                <Button text={`↑ ${formatCount(waiting)} new`} class="quiet" onClick={letIn} />
              </p>
            )}
            <Table
              name="Requests"
              columns={requestColumns(nameOfKey)}
              rows={steady.shown}
              keyOf={(row: Generation) => row.id}
              open={(row) => goTo(["requests", row.id], query)}
              pager={pager}
              filters={<Filters />}
              empty={
                <Empty
                  text="No requests yet. Each request appears here a moment after its response."
                  children={<FirstSteps />}
                />
              }
            />
          </div>
        )}
      </ReadResult>
      {id !== undefined && (
        <Receipt
          id={id}
          known={rows.find((row) => row.id === id)}
          beside={besideOf(rows, id)}
          onClose={() => goTo(["requests"], query)}
        />
      )}
    </>
  );
}

function besideOf(rows: readonly Generation[], id: string): NeighborIds {
  const at = rows.findIndex((row) => row.id === id);
  return at === -1 ? [null, null] : [rows[at - 1]?.id ?? null, rows[at + 1]?.id ?? null];
}

function Filters() {
  const [query] = useQuery();
  const known = latestOf(useRead("GET /v1/keys"));
  const keys = known?.keys.map(({ id, name }) => [id, name] as const) ?? [];
  return (
    <>
      <input
        class="filter"
        aria-label="Request ID"
        placeholder="Id  ( / )"
        data-filter
        onChange={({ currentTarget: { value } }) =>
          value !== "" && goTo(["requests", value.trim()])
        }
      />
      <ModelFilter />
      <ChoiceFilter name="key_id" label="Key" options={[["", "All keys"], ...keys]} />
      <TextFilter name="external_id" label="End user" />
      <TextFilter name="tag" label="Tag (team:search)" />
      {query["provider"] !== undefined && <TextFilter name="provider" label="Provider" />}
      {query["code"] !== undefined && <TextFilter name="code" label="Error code" />}
      <DayFilter name="from" />
      <DayFilter name="to" />
      <ClearFilters names={FILTERS} />
    </>
  );
}

function OpenHolds() {
  const read = useRead("GET /v1/holds", { query: { limit: 20 } }, { every: 5000 });
  return (
    <ReadResult read={read} height={36}>
      {({ holds, next_after }) => (
        <Running holds={holds} more={next_after === undefined ? "" : " and more"} />
      )}
    </ReadResult>
  );
}

function Running({ holds, more }: { holds: readonly Hold[]; more: string }) {
  const [oldest] = holds;
  const now = Math.max(useNow(), Date.now());
  if (oldest === undefined) return <p class="notice calm muted">No running requests.</p>;
  const held = holds.reduce((sum, { granted_micro }) => sum + granted_micro, 0);
  return (
    <details class="notice calm">
      <summary>
        {formatCount(holds.length)}
        {more} running, the oldest for {ageOf(oldest, now)}, <Money micros={held} /> held
      </summary>
      <HoldTable holds={holds} now={now} />
    </details>
  );
}

function ageOf({ since }: Hold, now: number): string {
  return formatDurationInWholeUnits(Math.max(0, now - Date.parse(since)));
}

function HoldTable({ holds, now }: { holds: readonly Hold[]; now: number }) {
  const nameOfKey = useKeyNames();
  const columns: readonly Column<Hold>[] = [
    column("age", "Age", ({ since }) => since, {
      cell: (hold) => <span title={localAndUtcTime(hold.since)}>{ageOf(hold, now)}</span>,
    }),
    moneyColumn("held", "Held", ({ granted_micro }) => granted_micro),
    column("key", "Key", ({ key_id }) => nameOfKey(key_id), {
      cell: ({ key_id }) => <a href={hrefOf(["keys", key_id])}>{nameOfKey(key_id)}</a>,
    }),
    column("user", "End user", ({ external_id }) => external_id),
    column("purpose", "For", ({ purpose }) => purposeText(purpose) || "a model", { wide: true }),
    codeColumn("id", "Request", ({ id }) => id, { wide: true }),
  ];
  return <Grid name="Open holds" rows={holds} keyOf={({ id }) => id} columns={columns} />;
}

type SteadyRows<T> = {
  readonly shown: readonly T[];
  readonly waiting: number;
  readonly showWaiting: () => void;
  readonly watch: {
    readonly onPointerEnter: () => void;
    readonly onPointerLeave: () => void;
    readonly onFocusIn: () => void;
    readonly onFocusOut: () => void;
  };
};

/** Holds back new rows while the pointer or focus is in the list. */
function useSteadyRows<T extends { readonly id: string }>(
  rows: readonly T[],
  of: string,
): SteadyRows<T> {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const [, rerender] = useState(0);
  const heldRows = useRef({ of, rows });
  const isHeld =
    (pointed || focused) && heldRows.current.of === of && heldRows.current.rows.length > 0;
  if (!isHeld) heldRows.current = { of, rows };
  const now = new Map(rows.map((row) => [row.id, row]));
  const shown = heldRows.current.rows;
  const known = new Set(shown.map(({ id }) => id));
  return {
    shown: shown.map((row) => now.get(row.id) ?? row),
    waiting: rows.filter(({ id }) => !known.has(id)).length,
    showWaiting: () => {
      heldRows.current = { of, rows };
      rerender((count) => count + 1);
    },
    watch: {
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
      onFocusIn: () => setFocused(true),
      onFocusOut: () => setFocused(false),
    },
  };
}
