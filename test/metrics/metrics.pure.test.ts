import * as fc from "fast-check";
import { expect, it } from "vitest";
import { formatPrometheusText } from "../../src/events/metrics/prometheus.ts";
import { METRICS, metricSeriesName, computeAgeGauges } from "../../src/events/metrics/series.ts";
import { histogramSeriesNames, MetricCounts } from "../../src/events/metrics/tally.ts";

/** Parses the metrics text into values by series. */
function samples(text: string): Map<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

it("the metrics text contains each counter with labels, and the help and type of each metric once", () => {
  const tally = new MetricCounts();
  tally.count("requests", { route: "/v1/models", status: "200" });
  tally.count("requests", { route: "/v1/models", status: "200" });
  tally.count("requests", { route: "/v1/models", status: "429" }, 3);
  tally.count("cost", { model: "m", provider: "p" }, 0);
  expect(formatPrometheusText(tally.take())).toBe(
    [
      "# HELP turnpike_requests_total Responses by route and status.",
      "# TYPE turnpike_requests_total counter",
      'turnpike_requests_total{route="/v1/models",status="200"} 2',
      'turnpike_requests_total{route="/v1/models",status="429"} 3',
      "",
    ].join("\n"),
  );
});

it("the metrics text contains a histogram's cumulative buckets, count and sum", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 400_000 }), { minLength: 1 }), (times) => {
      const tally = new MetricCounts();
      const headers = histogramSeriesNames("headers", { route: 'a"\\\n' });
      for (const ms of times) tally.observe(headers, ms / 1000);
      const text = formatPrometheusText(tally.take());
      const read = samples(text);
      const labels = String.raw`route="a\"\\\n"`;
      for (const le of METRICS.headers.buckets ?? []) {
        const below = times.filter((ms) => ms / 1000 <= le).length;
        expect(read.get(`turnpike_response_seconds_bucket{${labels},le="${le}"}`)).toBe(below);
      }
      const all = `turnpike_response_seconds_bucket{${labels},le="+Inf"}`;
      expect(read.get(all)).toBe(times.length);
      expect(read.get(`turnpike_response_seconds_count{${labels}}`)).toBe(times.length);
      const sum = times.reduce((total, ms) => total + ms / 1000, 0);
      expect(read.get(`turnpike_response_seconds_sum{${labels}}`)).toBeCloseTo(sum, 6);
    }),
  );
});

it("the metrics tally adds up counts, and is empty once the counts are taken", () => {
  const one = new MetricCounts();
  one.count("tokens", { model: "m", type: "input" }, 5);
  const first = one.take();
  expect(one.isEmpty).toBe(true);
  one.count("tokens", { model: "m", type: "input" }, 7);
  const key = metricSeriesName("turnpike_tokens_total", { model: "m", type: "input" });
  expect([first[key], one.take()[key], one.take()[key]]).toEqual([5, 7, undefined]);
});

it("a job's age counts from the region's start if the job never ran, and is never negative", () => {
  const ahead = { atMs: 2500, series: {} };
  const counted = { sinceMs: 1000, counters: {}, gauges: ahead, views: {}, jobs: {} };
  expect(computeAgeGauges(counted, 2000)).toEqual({
    turnpike_depths_age_seconds: 0,
    turnpike_outboxes_age_seconds: 1,
    turnpike_payments_sweep_age_seconds: 1,
  });
});

it("the metrics text omits unknown metrics", () => {
  expect(formatPrometheusText({ turnpike_gone_total: 4, turnpike_requests_total_more: 1 })).toBe(
    "",
  );
});

it("the metrics tally holds at most 5,000 series that an attacker's requests can create", () => {
  const tally = new MetricCounts();
  for (let i = 0; i < 6000; i++) tally.count("requests", { route: `/${i}`, status: "404" });
  expect(Object.keys(tally.take())).toHaveLength(5000);
});
