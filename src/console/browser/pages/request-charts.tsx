import { useQuery } from "../state/route.ts";
import { countText, formatCount } from "../lib/money.ts";
import { errorDays } from "../lib/range.ts";
import { fixedRead, readPages, useCustomRead, useRead } from "../state/reads.ts";
import { useNow } from "../state/cell.ts";
import { ErrorChart, FilterNotice } from "../ui/error-chart.tsx";
import { ReadResult } from "../ui/states.tsx";
import { Button } from "../ui/basics.tsx";
import { buildUrl } from "../api/client.ts";
import type { ApiCallParameters, CallOutcome } from "../api/client.ts";
import {
  FAILED_REQUESTS_LABEL,
  STOPPED_REQUESTS_LABEL,
  SUCCEEDED_REQUESTS_LABEL,
  codeText,
  requestsByState,
} from "../lib/request-states.ts";
import type { Errors, Generation, Usage } from "../api/types.ts";
import { STOPPED_CODE } from "../lib/spend.ts";
import type { DayRow } from "../lib/spend.ts";
import type { ColorSlot } from "../lib/plot-shape.ts";
import type { DateRange } from "../lib/range.ts";
import { DAY_MS, daysBetween, hoursBetween, utcDay } from "../lib/time.ts";
import { useCanMakeCall } from "../state/session.ts";
import { GroupChart } from "../ui/chart.tsx";

export function RequestChart() {
  return useQuery()[0]["status"] === "error" ? <RequestErrors /> : <RequestStates />;
}

function RequestErrors() {
  const [query, update] = useQuery();
  const { key_id: keyId, code: chosen, model, provider, external_id, tag } = query;
  const now = useNow();
  const range = errorDays(query, now);
  const { from, to } = range;
  const asked = { from, to, ...(keyId !== undefined && { key_id: keyId }) };
  const read = useRead("GET /v1/errors", { query: asked }, { every: 30_000 });
  return (
    <>
      <FilterNotice only={{ model, provider, external_id, tag }} />
      <ReadResult read={read} height={340}>
        {({ data, total }) => (
          <>
            <p class="notice calm">
              {total === 0 ? "No errors" : countText(total, "failed, rejected or stopped request")}{" "}
              from {from} to {to} (UTC)
              {total > 0 && ": "}
              {data.map(({ group: code = null, count }) => (
                <Button
                  key={code}
                  text={`${formatCount(count)} ${codeText(code)}`}
                  class="quiet"
                  aria-pressed={chosen === code}
                  onClick={() => update({ code: chosen === code ? "" : (code ?? "") })}
                />
              ))}
            </p>
            {total > 0 && (
              <ErrorChart {...{ range, keyId }} code={chosen} parts={chartParts(range, now)} />
            )}
          </>
        )}
      </ReadResult>
    </>
  );
}

const EVERY_MS = 30_000;
const USAGE = "GET /v1/usage";
const ERRORS = "GET /v1/errors";
const LIST = "GET /v1/generations";
const FAILURE_PAGES_MAX = 10;
type Series = readonly [slot: ColorSlot, filter: Readonly<Record<string, string>>];
const SERIES: Readonly<Record<string, Series>> = {
  [SUCCEEDED_REQUESTS_LABEL]: [2, { status: "settled" }],
  [FAILED_REQUESTS_LABEL]: ["bad", { status: "error" }],
  [STOPPED_REQUESTS_LABEL]: [5, { status: "error", code: STOPPED_CODE }],
};
const HOURLY_MS = 3 * DAY_MS;
const NO_ROWS = fixedRead<{ readonly data: readonly never[] }>({ data: [] });

/** Reads the charged failed requests. Usage counts them too. */
async function readChargedFailures(
  query: ApiCallParameters<typeof LIST>["query"],
): Promise<CallOutcome<{ readonly data: readonly Generation[] }>> {
  const read = await readPages(LIST, { ...query, status: "failed", limit: 100 }, FAILURE_PAGES_MAX);
  if (!read.ok) return read;
  const rows = read.value.pages.flatMap(({ generations }) => generations);
  return { ok: true, value: { data: rows.filter(({ status }) => status === "settled") } };
}

function RequestStates() {
  const [{ from, to, model, provider, external_id }] = useQuery();
  const mayCount = useCanMakeCall()(USAGE);
  /** The API counts errors only by hour and key. */
  const isCounted = (model ?? provider ?? external_id) === undefined;
  const title = titleOf(mayCount, isCounted);
  const days =
    from === undefined && to === undefined ? "today" : `${from ?? to ?? ""} to ${to ?? "today"}`;
  return (
    <>
      <p class="small muted">
        {title}: {days} (UTC).
        {!isCounted && " With these filters, the chart omits failed requests."}
      </p>
      {(mayCount || isCounted) && (
        <StateChart title={title} mayCount={mayCount} isCounted={isCounted} />
      )}
    </>
  );
}

function titleOf(mayCount: boolean, isCounted: boolean): string {
  if (!mayCount) return "Errors";
  return isCounted ? "Requests by status" : "Successful requests";
}

type StateChartProps = { title: string; mayCount: boolean; isCounted: boolean };
function StateChart({ title, mayCount, isCounted }: StateChartProps) {
  const [query] = useQuery();
  const now = useNow();
  const { to = utcDay(now), from = to, model, provider, key_id, external_id } = query;
  const parts = chartParts({ from, to }, now);
  const length = parts[0]?.length ?? 10;
  const group_by = length > 10 ? ("hour" as const) : ("day" as const);
  const filters = Object.entries({ model, provider, key_id, external_id });
  const only = Object.fromEntries(filters.filter(([, one]) => one !== undefined));
  const asked = { from, to, ...only };
  const every = { every: EVERY_MS };
  const usage = useRead(mayCount ? USAGE : null, { query: { ...asked, group_by } }, every);
  const errors = useRead(
    isCounted ? ERRORS : null,
    { query: { ...asked, group_by: "hour,code" } },
    every,
  );
  const charged = useCustomRead(
    mayCount ? `charged failures ${buildUrl(LIST, { query: asked })}` : null,
    () => readChargedFailures(asked),
    every,
  );
  return (
    <ReadResult<Pick<Usage, "data">> read={mayCount ? usage : NO_ROWS} height={304}>
      {({ data: settled }) => (
        <ReadResult read={mayCount ? charged : NO_ROWS} height={304}>
          {({ data: failed }) => (
            <ReadResult<Pick<Errors, "data">> read={isCounted ? errors : NO_ROWS} height={304}>
              {({ data: errorRows }) => (
                <StateBars
                  name={title}
                  parts={parts}
                  rows={requestsByState({ settled, failed, errors: errorRows, length })}
                />
              )}
            </ReadResult>
          )}
        </ReadResult>
      )}
    </ReadResult>
  );
}

function chartParts({ from, to }: DateRange, now: number): readonly string[] {
  const isShort = Date.parse(to) - Date.parse(from) < HOURLY_MS;
  return isShort ? hoursBetween(from, to, now) : daysBetween(from, to);
}

type StateBarsProps = { name: string; parts: readonly string[]; rows: readonly DayRow[] };
function StateBars({ name, parts, rows }: StateBarsProps) {
  const [, update] = useQuery();
  return (
    <GroupChart
      name={name}
      rows={rows}
      parts={parts}
      metric="requests"
      labelOf={(group) => group ?? ""}
      unit="count"
      slotOf={(group) => SERIES[group ?? ""]?.[0] ?? 2}
      onSelect={(first, last, group) => {
        update({ from: first.slice(0, 10), to: last.slice(0, 10), ...SERIES[group ?? ""]?.[1] });
      }}
    />
  );
}
