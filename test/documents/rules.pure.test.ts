import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { ROOT } from "./pages.ts";
import { isInstalled, NOT_INSTALLED } from "./prometheus.ts";

const RULES = path.join(ROOT, "docs/operate/prometheus-rules.yml");

/** A bad half hour between two good ones. */
type Outage = {
  readonly what: string;
  readonly alerts: readonly string[];
  /**
   * The value of each series in a good and in a bad minute. Counters add it to their previous
   * value.
   */
  readonly series: Readonly<Record<string, readonly [good: Value, bad: Value]>>;
};
type Value = number | "absent" | ((minute: number) => number);

const REQUESTS = 'turnpike_requests_total{region="eu",route="/v1/chat/completions"';
const FIRST_BYTE = 'turnpike_first_byte_seconds_bucket{region="eu",kind="chat",stream="true"';
const LEFT_OUT = 'turnpike_routes_left_out_isolates{region="eu",route="openai:gpt-5"';
const OPENAI = 'region="eu",provider="openai"';
/** Returns the age of a job that doesn't run, in seconds. */
const grows = (minute: number): number => 60 * (minute + 1);

const OUTAGES: readonly Outage[] = [
  {
    what: "a region that can't be reached",
    alerts: ["TurnpikeSilent"],
    series: { 'up{job="turnpike",region="us"}': [1, 0], 'up{job="turnpike",region="eu"}': [1, 1] },
  },
  {
    what: "a Prometheus without targets",
    alerts: ["TurnpikeSilent"],
    series: { 'up{job="turnpike",region="eu"}': [1, "absent"] },
  },
  {
    what: "a provider that answers 500",
    alerts: ["TurnpikeErrors", "TurnpikeProviderFailing", "TurnpikeRoutesLeftOut"],
    series: {
      [`${REQUESTS},status="200"}`]: [60, 0],
      [`${REQUESTS},status="502"}`]: [0, 60],
      [`turnpike_attempts_total{${OPENAI}}`]: [60, 0],
      // Its circuit breaker lets one request pass each time it opens, at most every 5 minutes.
      [`turnpike_attempts_failed_total{${OPENAI},status="500",reason="retry"}`]: [
        0,
        (minute) => (minute < 1 ? 5 : Number(minute % 4 === 0)),
      ],
      [`${LEFT_OUT},state="open"}`]: [0, (minute) => Number(minute % 2 === 0)],
    },
  },
  {
    what: "a provider that answers 429",
    alerts: ["TurnpikeErrors", "TurnpikeProviderFailing", "TurnpikeRoutesLeftOut"],
    series: {
      [`${REQUESTS},status="200"}`]: [60, 0],
      [`${REQUESTS},status="503"}`]: [0, 60],
      [`turnpike_attempts_total{${OPENAI}}`]: [60, 0],
      [`turnpike_attempts_failed_total{${OPENAI},status="429",reason="overloaded"}`]: [0, 6],
      [`${LEFT_OUT},state="overloaded"}`]: [0, 1],
    },
  },
  {
    what: "a dead provider key, which is tried again after 1, 2, 4, 8 and 10 minutes",
    alerts: ["TurnpikeErrors", "TurnpikeProviderKeyRefused"],
    series: {
      [`${REQUESTS},status="200"}`]: [60, 0],
      [`${REQUESTS},status="502"}`]: [0, 60],
      [`${LEFT_OUT},state="disabled"}`]: [0, 1],
    },
  },
  {
    what: "streams that start after 30 seconds",
    alerts: ["TurnpikeSlowFirstByte"],
    series: { [`${FIRST_BYTE},le="10"}`]: [60, 0], [`${FIRST_BYTE},le="+Inf"}`]: [60, 60] },
  },
  {
    what: "an outbox that does not empty",
    alerts: ["TurnpikeOutboxLate"],
    series: {
      // measured every 3 minutes
      'turnpike_outbox_oldest_seconds{region="eu",receiver="us"}': [
        0,
        (minute) => grows(minute - (minute % 3)),
      ],
    },
  },
  {
    what: "outboxes that do not answer",
    alerts: ["TurnpikeOutboxesSilent"],
    series: { 'turnpike_outboxes_silent{region="eu"}': [0, 1] },
  },
  {
    what: "crons that do not run",
    alerts: ["TurnpikeCronSilent"],
    series: {
      'turnpike_outboxes_age_seconds{region="eu"}': [90, grows],
      'turnpike_payments_sweep_age_seconds{region="eu"}': [90, grows],
    },
  },
  {
    what: "an unreachable payment provider",
    alerts: ["TurnpikePaymentsNotSwept"],
    series: {
      'turnpike_outboxes_age_seconds{region="eu"}': [90, 90],
      'turnpike_payments_sweep_age_seconds{region="eu"}': [90, grows],
    },
  },
];

const [BEGINS, ENDS, MINUTES] = [30, 60, 90];

/** Returns the samples of a series, one per minute, in promtool's format. */
function samples(name: string, [good, bad]: readonly [Value, Value]): string {
  const isCounter = /_total\b|_bucket\b/.test(name);
  let sum = 0;
  const values = Array.from({ length: MINUTES }, (_, minute) => {
    const isBad = minute >= BEGINS && minute < ENDS;
    const value = isBad ? bad : good;
    if (value === "absent") return "_";
    const now = typeof value === "number" ? value : value(minute - BEGINS);
    sum += now;
    return String(isCounter ? sum : now);
  });
  return values.join(" ");
}

function firing(minute: number, alertname: string, count: number): object {
  return {
    eval_time: `${minute}m`,
    expr: `count(ALERTS{alertname="${alertname}",alertstate="firing"}) or vector(0)`,
    exp_samples: [{ labels: "{}", value: count }],
  };
}

function testOf({ series, alerts }: Outage): object {
  const all = { eval_time: "", expr: 'count(ALERTS{alertstate="firing"}) or vector(0)' };
  const none = [{ labels: "{}", value: 0 }];
  const hasUpSeries = Object.keys(series).some((name) => name.startsWith("up{"));
  const inputs = {
    ...(!hasUpSeries && { 'up{job="turnpike",region="eu"}': [1, 1] as const }),
    ...series,
  };
  return {
    interval: "1m",
    input_series: [
      ...Object.entries(inputs).map(([name, values]) => ({
        series: name,
        values: samples(name, values),
      })),
      { series: 'turnpike_isolates{region="eu"}', values: `1x${MINUTES}` },
    ],
    promql_expr_test: [
      { ...all, eval_time: `${BEGINS - 1}m`, exp_samples: none },
      // From the tenth minute until the end of the outage, and at most ten minutes longer.
      ...[BEGINS + 10, BEGINS + 17, ENDS - 1].flatMap((minute) =>
        alerts.map((alert) => firing(minute, alert, 1)),
      ),
      { ...all, eval_time: `${ENDS + 10}m`, exp_samples: none },
    ],
  };
}

const HAS_PROMTOOL = isInstalled("promtool");
describe.skipIf(!HAS_PROMTOOL)(
  `the Prometheus rule file${HAS_PROMTOOL ? "" : ` (${NOT_INSTALLED})`}`,
  () => {
    it.each(OUTAGES.map((outage) => [outage.what, outage] as const))(
      "starts an alert within 10 minutes of the start of %s, and ends it within 10 minutes of the end",
      (_what, outage) => {
        const directory = mkdtempSync(path.join(tmpdir(), "turnpike-rules-"));
        const file = path.join(directory, "test.json"); // JSON is valid YAML
        const test = { rule_files: [RULES], evaluation_interval: "1m", tests: [testOf(outage)] };
        writeFileSync(file, JSON.stringify(test));
        const { stdout, stderr } = spawnSync("promtool", ["test", "rules", file], {
          encoding: "utf8",
        });
        removeDirectory(directory);
        expect(`${stdout}${stderr}`).toContain("SUCCESS");
      },
    );
  },
);
