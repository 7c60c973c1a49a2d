import { codeText } from "../lib/request-states.ts";
import { usageWithOnlyRequests } from "../lib/spend.ts";
import { useRead } from "../state/reads.ts";
import type { UsageRange } from "../state/spend.ts";
import { GroupChart } from "./chart.tsx";
import { ReadResult } from "./states.tsx";

const EVERY_MS = 30_000;

const WORDS: Readonly<Record<string, string>> = {
  external_id: "end user",
  member_id: "member",
};

export function FilterNotice({ only }: { only: Readonly<Record<string, string | undefined>> }) {
  const fields = Object.keys(only).filter((field) => field !== "key_id" && only[field]);
  if (fields.length === 0) return null;
  const names = fields.map((field) => WORDS[field] ?? field).join(" and ");
  return <p class="notice">▲ These totals can't be grouped by {names}.</p>;
}

type ErrorChartProps = {
  range: UsageRange;
  keyId: string | undefined;
  /** The only error code to show. By default, the chart shows all. */
  code?: string | undefined;
  parts: readonly string[];
  onSelect?: (from: string, to: string) => void;
};
export function ErrorChart({ range: { from, to }, keyId, code, parts, onSelect }: ErrorChartProps) {
  const query = { from, to, group_by: "hour,code", key_id: keyId ?? "" } as const;
  const read = useRead("GET /v1/errors", { query }, { every: EVERY_MS });
  const length = parts[0]?.length ?? 10;
  return (
    <ReadResult read={read} height={304}>
      {({ data, total }) => {
        if (total === 0) return <p class="small muted">No errors in this period.</p>;
        const shown = code === undefined ? data : data.filter(({ group }) => group === code);
        const rows = shown.map(({ hour = "", group = "", count }) =>
          Object.assign(usageWithOnlyRequests(count), { day: hour.slice(0, length), group }),
        );
        return (
          <GroupChart
            name="Errors by code"
            rows={rows}
            parts={parts}
            metric="requests"
            labelOf={codeText}
            unit="count"
            onSelect={onSelect}
          />
        );
      }}
    </ReadResult>
  );
}
