import { countText, formatCount } from "../lib/money.ts";
import { hoursBetween, utcDay } from "../lib/time.ts";
import { useRead } from "../state/reads.ts";
import { useQuery } from "../state/route.ts";
import type { Query } from "../state/route.ts";
import type { UsageFilter } from "../state/spend.ts";
import { useNow } from "../state/now.ts";
import { ErrorChart, FilterNotice } from "../ui/error-chart.tsx";
import { ReadResult } from "../ui/states.tsx";

export function RequestErrors() {
  const [query] = useQuery();
  return (
    <>
      <FilterNotice only={onlyOf(query)} />
      <ErrorCounts />
      {query["from"] === undefined && query["to"] === undefined && <ErrorsToday />}
    </>
  );
}

function ErrorCounts() {
  const [query, update] = useQuery();
  const { to, from = to, key_id } = query;
  const asked = Object.fromEntries(Object.entries({ from, to, key_id }).filter(([, one]) => one));
  const read = useRead("GET /v1/errors", { query: asked }, { every: 30_000 });
  return (
    <ReadResult read={read} height={36}>
      {({ data, total }) => (
        <p class="notice calm">
          {total === 0 ? "No errors" : countText(total, "error")}{" "}
          {from === undefined ? "today (UTC)" : `from ${from} to ${to ?? "today"} (UTC)`}
          {data.length > 0 && ": "}
          {data
            .map(({ group: code, count }) => ({ group: code ?? "", count }))
            .map(({ group, count }) => (
              <button
                key={group}
                type="button"
                class="quiet"
                aria-pressed={query["code"] === group}
                onClick={() => update({ code: query["code"] === group ? "" : group })}
              >
                {formatCount(count)} {group}
              </button>
            ))}
        </p>
      )}
    </ReadResult>
  );
}

function onlyOf({ model, provider, key_id, external_id }: Query): UsageFilter {
  const filters = Object.entries({ model, provider, key_id, external_id });
  return Object.fromEntries(filters.filter(([, one]) => one !== undefined));
}

function ErrorsToday() {
  const [query] = useQuery();
  const now = useNow();
  const today = utcDay(now);
  const range = { from: today, to: today };
  const { key_id } = query;
  return <ErrorChart range={range} keyId={key_id} parts={hoursBetween(today, today, now)} />;
}
