import { balanceCurve, runway } from "../lib/balance-curve.ts";
import { DAY_MS, daysBetween, utcDay } from "../lib/time.ts";
import { useRead } from "../state/reads.ts";
import { Panel } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { Chart } from "../ui/chart.tsx";
import { ReadResult } from "../ui/states.tsx";

const DAYS = 90;
const CREDITS_MAX = 100;
export function BalanceCurve() {
  const now = useNow();
  const today = utcDay(now);
  const from = utcDay(now - (DAYS - 1) * DAY_MS);
  const balance = useRead("GET /v1/balance", {}, { every: 5000 });
  const usage = useRead("GET /v1/usage", { query: { from, to: today, group_by: "day" } });
  const credits = useRead("GET /v1/credits", { query: { limit: CREDITS_MAX } });
  return (
    <Panel title="Balance by day">
      <ReadResult read={balance} height={340}>
        {({ credits_micro, available_micro }) => (
          <ReadResult read={usage} height={340}>
            {({ data }) => (
              <ReadResult read={credits} height={340}>
                {({ credits: rows, next_after }) => {
                  const paid = rows.map(({ created_at, amount_micro }) => ({
                    day: created_at.slice(0, 10),
                    micros: amount_micro,
                  }));
                  const used = data.map(({ group, cost_micro }) => ({
                    day: group ?? "",
                    cost_micro,
                  }));
                  const spent = used.map(({ day, cost_micro }) => ({ day, micros: -cost_micro }));
                  const known = next_after === null ? from : (paid.at(-1)?.day ?? from);
                  const days = daysBetween(known > from ? known : from, today);
                  const values = balanceCurve(credits_micro, [...paid, ...spent], days);
                  return (
                    <>
                      <Chart
                        name="Balance by day"
                        days={days}
                        kind="steps"
                        series={[{ label: "Balance at the end of the day", slot: 0, values }]}
                        unit="balance"
                      />
                      <p class="small">{runway(available_micro, used, now)}</p>
                    </>
                  );
                }}
              </ReadResult>
            )}
          </ReadResult>
        )}
      </ReadResult>
    </Panel>
  );
}
