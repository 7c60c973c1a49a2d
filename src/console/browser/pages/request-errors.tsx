import { countText, formatCount } from "../lib/money.ts";
import { errorDays } from "../lib/range.ts";
import { useRead } from "../state/reads.ts";
import { useQuery } from "../state/route.ts";
import { useNow } from "../state/now.ts";
import { ErrorChart, FilterNotice } from "../ui/error-chart.tsx";
import { ReadResult } from "../ui/states.tsx";
import { chartParts } from "./request-states.tsx";
import { Button } from "../ui/basics.tsx";

export function RequestErrors() {
  const [query, update] = useQuery();
  const { key_id: keyId, code: chosen, model, provider, external_id } = query;
  const now = useNow();
  const range = errorDays(query, now);
  const { from, to } = range;
  const asked = { from, to, ...(keyId !== undefined && { key_id: keyId }) };
  const read = useRead("GET /v1/errors", { query: asked }, { every: 30_000 });
  return (
    <>
      <FilterNotice only={{ model, provider, external_id }} />
      <ReadResult read={read} height={340}>
        {({ data, total }) => (
          <>
            <p class="notice calm">
              {total === 0 ? "No errors" : countText(total, "error")} from {from} to {to} (UTC)
              {total > 0 && ": "}
              {data.map(({ group: code = null, count }) => (
                <Button
                  key={code}
                  text={`${formatCount(count)} ${code}`}
                  class="quiet"
                  aria-pressed={chosen === code}
                  onClick={() => update({ code: chosen === code ? "" : (code ?? "") })}
                />
              ))}
            </p>
            {total > 0 && <ErrorChart range={range} keyId={keyId} parts={chartParts(range, now)} />}
          </>
        )}
      </ReadResult>
    </>
  );
}
