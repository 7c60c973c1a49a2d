import { Option } from "commander";
import type { Command } from "commander";
import { getAlerts, getUsage } from "../admin-client.ts";
import { textTable } from "../table.ts";
import type { Column } from "../table.ts";
import { day, organizationName, whole } from "./arguments.ts";
import { GROUPINGS } from "./records.ts";
import type { Alert, GroupBy, Usage, UsageAmounts } from "./records.ts";
import { does, examples, noteRest, organizationId, show } from "./session.ts";
import { dollars, time } from "./words.ts";

const OFFSET_MAX = 1_000_000_000;

type Period = { readonly from?: string; readonly to?: string; readonly groupBy?: GroupBy };

/** `usage` and `alerts`: what an organisation's own reads say. */
export function addReportCommands(program: Command): void {
  const usage = program
    .command("usage")
    .description("requests, tokens and cost of an organisation")
    .argument("<org>", "id or slug", organizationName)
    .option("--from <day>", "first day, YYYY-MM-DD in UTC (default: 30 days up to today)", day)
    .option("--to <day>", "last day, inclusive", day)
    .addOption(new Option("--group-by <group>", "a row for each").choices(GROUPINGS));
  examples(
    usage,
    "usage --local eu example",
    "usage --local eu example --from 2026-11-01 --to 2026-11-30 --group-by model",
  );
  does(usage, async (session, [org]: [string], { from, to, groupBy }: Period) => {
    const orgId = await organizationId(session, org);
    const answer = await getUsage(session.admin, orgId, { from, to, group_by: groupBy });
    show(session, answer, () => usageTable(answer));
  });

  const alerts = program
    .command("alerts")
    .description("quotas nearly used up and low balances, newest first")
    .argument("<org>", "id or slug", organizationName)
    .option("--limit <number>", "at most so many, 1 to 100", whole(1, 100), 50)
    .option("--offset <number>", "leave out so many at the start", whole(0, OFFSET_MAX), 0);
  examples(alerts, "alerts --local eu example");
  does(alerts, async (session, [org]: [string], page: { limit: number; offset: number }) => {
    const { limit, offset } = page;
    const orgId = await organizationId(session, org);
    const answer = await getAlerts(session.admin, orgId, { limit, offset });
    show(session, answer, () => alertTable(answer.alerts));
    noteRest({ shown: answer.alerts.length, offset, total: answer.total });
  });
}

function usageTable({ from, to, group_by, data, total }: Usage): string {
  const columns: readonly Column[] = [
    { title: group_by },
    { title: "requests", align: "right" },
    { title: "prompt tokens", align: "right" },
    { title: "completion tokens", align: "right" },
    { title: "dollars", align: "right" },
    { title: "micros", align: "right" },
  ];
  const rows = data.map((row) => [row.group ?? "(none)", ...amounts(row)]);
  return `${from} to ${to}\n\n${textTable(columns, [...rows, ["total", ...amounts(total)]])}`;
}

function amounts(row: UsageAmounts): string[] {
  const { requests, prompt_tokens, completion_tokens, cost_micro } = row;
  return [requests, prompt_tokens, completion_tokens, dollars(cost_micro), cost_micro].map(String);
}

const ALERT_COLUMNS: readonly Column[] = [
  { title: "time" },
  { title: "kind" },
  { title: "end user" },
  { title: "period" },
  { title: "threshold", align: "right" },
  { title: "limit", align: "right" },
  { title: "value", align: "right" },
];

function alertTable(alerts: readonly Alert[]): string {
  const rows = alerts.map((alert) => [
    time(alert.created_at),
    alert.kind,
    alert.external_id ?? "",
    alert.period ?? "",
    alert.threshold === null ? "" : String(alert.threshold),
    alert.limit_micro === null ? "" : dollars(alert.limit_micro),
    dollars(alert.value_micro),
  ]);
  return textTable(ALERT_COLUMNS, rows);
}
