import type { Errors, Generation, Usage } from "../api/types.ts";
import { STOPPED_CODE, isError, usageWithOnlyRequests } from "./spend.ts";
import type { DayRow } from "./spend.ts";

export const SUCCEEDED_REQUESTS_LABEL = "Succeeded";
export const FAILED_REQUESTS_LABEL = "Failed or rejected";
export const STOPPED_REQUESTS_LABEL = "Stopped by the client";

type Counts = {
  /** Charged requests by hour or day, including failed ones. */
  readonly settled: Usage["data"];
  /** Charged requests that failed. */
  readonly failed: readonly Pick<Generation, "created_at">[];
  /** All failures by hour and code. */
  readonly errors: Errors["data"];
  /** Number of characters in a bar's date: 13 for an hour, 10 for a day. */
  readonly length: number;
};

/** Returns the requests of each hour or day by outcome. Each request counts once. */
export function requestsByState({ settled, failed, errors, length }: Counts): readonly DayRow[] {
  const charged = Map.groupBy(failed, ({ created_at }) => created_at.slice(0, length));
  return [
    ...settled.map(({ hour, group, requests }) => {
      const day = hour ?? group ?? "";
      return rowOf(
        day,
        SUCCEEDED_REQUESTS_LABEL,
        Math.max(0, requests - (charged.get(day)?.length ?? 0)),
      );
    }),
    ...errors.map((row) =>
      rowOf(
        (row.hour ?? "").slice(0, length),
        isError(row) ? FAILED_REQUESTS_LABEL : STOPPED_REQUESTS_LABEL,
        row.count,
      ),
    ),
  ];
}

export function codeText(code: string | null | undefined): string {
  return code === STOPPED_CODE ? STOPPED_REQUESTS_LABEL.toLowerCase() : (code ?? "none");
}

function rowOf(day: string, group: string, requests: number): DayRow {
  return { day, group, ...usageWithOnlyRequests(requests) };
}
