import { unused } from "../lib/spend.ts";
import { grouped } from "../lib/money.ts";
import { useRead } from "../state/reads.ts";
import type { Range } from "../state/spend.ts";
import { GroupChart } from "./group-chart.tsx";
import { Shown } from "./states.tsx";

const EVERY_MS = 30_000;

/** What failed or was refused, by code: bars of UTC hours where `parts` are hours, else of days. */
export function ErrorChart({
  range: { from, to },
  parts,
  onSelect,
}: {
  range: Range;
  parts: readonly string[];
  onSelect?: (from: string, to: string) => void;
}) {
  const query = { from, to, group_by: "hour,code" } as const;
  const read = useRead("GET /v1/errors", { query }, { every: EVERY_MS });
  const length = parts[0]?.length ?? 10;
  return (
    <Shown read={read} height={304}>
      {({ data, total }) => {
        const rows = data.map(({ hour = "", group = "", count }) => ({
          day: hour.slice(0, length),
          group,
          ...unused(count),
        }));
        return (
          <>
            <GroupChart
              name="Errors by code"
              rows={rows}
              parts={parts}
              metric="requests"
              labelOf={(code) => code ?? "none"}
              show={grouped}
              onSelect={onSelect}
            />
            {total === 0 && <p class="small muted">Nothing failed or was refused.</p>}
          </>
        );
      }}
    </Shown>
  );
}
