import { balanceCurve, findLastCoveredDay } from "../lib/balance-curve.ts";
import type { BalanceMovement } from "../lib/balance-curve.ts";
import { formatSpent } from "../lib/money.ts";
import { DAY, dayName, daysBetween, utcDay } from "../lib/time.ts";
import { useRead } from "../state/reads.ts";
import { Panel } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { Chart } from "../ui/chart.tsx";
import { ReadResult } from "../ui/states.tsx";

const DAYS = 90;
const CREDITS_MAX = 100;
const PACES = [
  ["yesterday", 1],
  ["in the last 7 days", 7],
  ["in the last 30 days", 30],
] as const;

export function BalanceCurve() {
  const now = useNow();
  const today = utcDay(now);
  const from = utcDay(now - (DAYS - 1) * DAY);
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
                    micros: -cost_micro,
                  }));
                  const known = next_after === null ? from : (paid.at(-1)?.day ?? from);
                  const days = daysBetween(known > from ? known : from, today);
                  const values = balanceCurve(credits_micro, [...paid, ...used], days);
                  return (
                    <>
                      <Chart
                        name="Balance by day"
                        days={days}
                        kind="steps"
                        series={[{ label: "Balance at the end of the day", slot: 0, values }]}
                        unit="balance"
                      />
                      <Paces left={available_micro} used={used} />
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

function Paces({ left: micros, used }: { left: number; used: readonly BalanceMovement[] }) {
  const now = useNow();
  const lines = PACES.map(([name, days]) => {
    const first = utcDay(now - days * DAY);
    const sum = used.reduce(
      (all, { day, micros: moved }) => (day >= first && day < utcDay(now) ? all - moved : all),
      0,
    );
    const perDay = Math.ceil(sum / days);
    return [name, perDay, findLastCoveredDay(micros, perDay, now)] as const;
  });
  return (
    <ul class="small">
      {lines.map(([name, perDay, until]) => (
        <li key={name}>
          If you spend as {name} ({formatSpent(perDay)} a day), your balance{" "}
          {until === null ? "doesn't run out" : <strong>lasts until {dayName(until)}</strong>}.
        </li>
      ))}
    </ul>
  );
}
