import { counted, grouped } from "../lib/money.ts";
import { hoursBetween, utcDay } from "../lib/time.ts";
import { useRead } from "../state/reads.ts";
import { useQuery } from "../state/route.ts";
import { useNow } from "../state/now.ts";
import { ErrorChart } from "../ui/error-chart.tsx";
import { Shown } from "../ui/states.tsx";

/** Above the list of what failed: how much of it, and today when. */
export function RequestErrors() {
  const [query] = useQuery();
  return (
    <>
      <ErrorCounts />
      {query["from"] === undefined && <ErrorsToday />}
    </>
  );
}

/** What failed or was refused today, by its code: each a filter of the list. */
function ErrorCounts() {
  const [query, update] = useQuery();
  const { from, to = from, key_id } = query;
  const asked = Object.fromEntries(Object.entries({ from, to, key_id }).filter(([, one]) => one));
  const read = useRead("GET /v1/errors", { query: asked }, { every: 30_000 });
  return (
    <Shown read={read} height={36}>
      {({ data, total }) => (
        <p class="notice calm">
          {total === 0 ? "No errors" : counted(total, "error")}{" "}
          {from === undefined ? "today (UTC)" : `from ${from} to ${to ?? ""}`}
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
                {grouped(count)} {group}
              </button>
            ))}
        </p>
      )}
    </Shown>
  );
}

/** When what failed today did. */
function ErrorsToday() {
  const now = useNow();
  const today = utcDay(now);
  const range = { from: today, to: today };
  return <ErrorChart range={range} parts={hoursBetween(today, today, now)} />;
}
