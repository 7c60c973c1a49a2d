import type { Errors } from "../api/types.ts";
import { localAndUtcTime, hourStart } from "../lib/time.ts";
import { useRead } from "../state/reads.ts";
import { goTo } from "../state/route.ts";
import { useGroupNames } from "../state/spend.ts";
import type { UsageFilter, Range, Split } from "../state/spend.ts";
import { FilterNotice } from "../ui/error-chart.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import { column, countColumn, timeColumn } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";
import { headingOf, titleOf } from "./activity-sums.tsx";

const EVERY_MS = 30_000;
const FILTERS = {
  model: "model",
  provider: "provider",
  key: "key_id",
  user: "external_id",
} as const;

const ERRORS_BY = ["model", "provider", "key", "user"] as const;

export function ErrorGroups({ by, range, only }: { by: Split; range: Range; only: UsageFilter }) {
  const split = by === "member" ? "key" : (ERRORS_BY.find((one) => one === by) ?? "model");
  const nameOf = useGroupNames();
  const { member_id, tag, key_id, ...otherFilters } = only; // errors can't be counted by these
  const chosen = { ...(split !== "key" && otherFilters), ...(key_id !== undefined && { key_id }) };
  const unusedFilters = {
    ...(split === "key" && otherFilters),
    ...(member_id !== undefined && { member_id }),
    ...(tag !== undefined && { tag }),
  };
  const query = { ...range, ...chosen, group_by: split };
  const read = useRead("GET /v1/errors", { query }, { every: EVERY_MS });
  const columns: readonly Column<Errors["data"][number]>[] = [
    column("group", titleOf(split), ({ group = null }) => nameOf(split, group), {
      csv: [[headingOf(split), ({ group = null }) => group]],
    }),
    countColumn("errors", "Errors", ({ count }) => count),
    timeColumn("last", "Last", ({ last_at }) => last_at),
  ];
  return (
    <ReadResult read={read} height={240}>
      {({ data, complete_from: since }) => (
        <>
          <FilterNotice only={unusedFilters} />
          {since !== undefined && Date.parse(since) > hourStart(range.from) && (
            <p class="notice">
              ▲ Complete since {localAndUtcTime(since)}. Some earlier errors are counted only by
              code and key.
            </p>
          )}
          <Table
            name={`Errors by ${split}`}
            columns={columns}
            rows={data}
            keyOf={({ group }) => group ?? ""}
            open={({ group = null }) => {
              if (group === null) return; // requests without a group can't be filtered
              goTo(["requests"], { ...range, ...chosen, status: "error", [FILTERS[split]]: group });
            }}
            empty={<Empty text="No errors in this period." />}
          />
        </>
      )}
    </ReadResult>
  );
}
