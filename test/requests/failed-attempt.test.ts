import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { reportFailedAttempt } from "../../src/models/requests/call-routes.ts";
import { MetricCounts } from "../../src/events/metrics/tally.ts";
import { runOf, SERVING } from "./run-fixture.ts";

it("the metrics assign any provider failure to one of a limited number of series", () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const tally = new MetricCounts();
  const run = runOf({ tally });
  const status = fc.integer({ min: 0, max: 99_999 }).map(String);
  const reasons = fc.oneof(
    status,
    status.map((code) => `token_${code}`),
    fc.string(),
  );
  fc.assert(
    fc.property(reasons, (reason) => {
      reportFailedAttempt(run, SERVING, { kind: "retry", reason });
    }),
    { numRuns: 3000 },
  );
  const series = Object.keys(tally.take());
  const statuses = new Set(series.map((name) => /status="([^"]*)"/.exec(name)?.[1]));
  for (const one of statuses) expect(one).toMatch(/^(?:[0-9]{3}|[0-9]xx|none)$/);
  expect(statuses.size).toBeLessThan(45);
});

it("the metrics count nothing against the provider if the client disconnects", () => {
  const warned = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const client = new AbortController();
  client.abort();
  const tally = new MetricCounts();
  reportFailedAttempt(runOf({ tally }, client.signal), SERVING, {
    kind: "retry",
    reason: "aborted",
  });
  expect([tally.isEmpty, warned.mock.calls]).toEqual([true, []]);
});
