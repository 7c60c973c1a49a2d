import { expect, it } from "vitest";
import { countRunInMetrics } from "../../src/models/requests/observe.route.ts";
import type { Outcome } from "../../src/models/requests/paid-request.ts";
import { micros } from "../../src/shared/money.ts";
import { MetricCounts } from "../../src/events/metrics/tally.ts";
import { runOf, SERVING, USAGE } from "./run-fixture.ts";

const SETTLED: Outcome = {
  kind: "settle",
  route: { ...SERVING, attempts: 2 },
  usage: USAGE,
  price: SERVING.route.price,
  cost: micros(70),
  estimated: true,
  finishReason: null,
};

function counted(progress: object) {
  const run = runOf();
  const tally = new MetricCounts();
  Object.assign(run.progress, progress);
  countRunInMetrics(run, tally);
  return Object.entries(tally.take()).filter(([name]) => !name.includes("_seconds"));
}

it("the metrics count a charged request's tokens, cost, attempts and unusual charges", () => {
  const odd = { outcome: SETTLED, charged: 70, shortfall: 3, isUnsaved: true };
  expect(Object.fromEntries(counted(odd))).toEqual({
    'turnpike_cost_micro_total{model="up/m",provider="up"}': 70,
    'turnpike_attempts_total{provider="up"}': 2,
    turnpike_shortfall_micro_total: 3,
    'turnpike_estimated_total{provider="up"}': 1,
    turnpike_unsaved_total: 1,
    'turnpike_tokens_total{model="up/m",type="input"}': USAGE.input,
    'turnpike_tokens_total{model="up/m",type="cache_read"}': USAGE.cacheRead,
    'turnpike_tokens_total{model="up/m",type="output"}': USAGE.output,
  });
});

it.each([true, false])(
  "the metrics measure the times of requests with stream %s apart from other requests",
  (stream) => {
    const run = runOf();
    const tally = new MetricCounts();
    Object.assign(run.progress, { outcome: SETTLED });
    countRunInMetrics({ ...run, request: { ...run.request, stream } }, tally);
    const names = Object.keys(tally.take()).filter((name) => name.includes("_seconds_sum"));
    expect(names).toEqual([
      `turnpike_first_byte_seconds_sum{kind="chat",stream="${stream}"}`,
      `turnpike_paid_seconds_sum{kind="chat",stream="${stream}"}`,
    ]);
  },
);

it("the metrics count an uncharged provider call as absorbed, unless the call never started", () => {
  const outcome = { kind: "void", reason: "upstream failed without usage: absorbed" };
  expect(counted({ outcome })).toEqual([
    ['turnpike_absorbed_total{reason="upstream_failed_without_usage_absorbed"}', 1],
  ]);
  expect(counted({})).toEqual([]);
});
