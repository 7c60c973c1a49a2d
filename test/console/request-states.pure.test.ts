import { expect, it } from "vitest";
import { requestsByState } from "../../src/console/browser/lib/request-states.ts";
import { countErrors } from "../../src/console/browser/lib/spend.ts";

const NO_AMOUNTS = { prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0, cost_micro: 0 };
const LAST = { last_at: "2026-11-28T09:10:00Z", last_id: "req_1" };

it.each([
  [13, "2026-11-28T09", { hour: "2026-11-28T09", group: null }],
  [10, "2026-11-28", { group: "2026-11-28" }],
])(
  "a failed request with a charge counts once, as failed, in the chart (dates of %i characters)",
  (length, day, at) => {
    const rows = requestsByState({
      settled: [{ ...at, requests: 3, ...NO_AMOUNTS }],
      failed: [{ created_at: "2026-11-28T09:10:00Z" }],
      errors: [
        { hour: "2026-11-28T09", group: "upstream_error", count: 1, ...LAST }, // the charged one
        { hour: "2026-11-28T09", group: "model_not_found", count: 1, ...LAST },
        { hour: "2026-11-28T09", group: "client_left", count: 4, ...LAST },
      ],
      length,
    });
    expect(rows.map((row) => [row.day, row.group, row.requests])).toEqual([
      [day, "Succeeded", 2],
      [day, "Failed or rejected", 1],
      [day, "Failed or rejected", 1],
      [day, "Stopped by the client", 4],
    ]);
  },
);

it("requests that the client stopped don't count as errors", () => {
  const data = [
    { group: "client_left", count: 4, ...LAST },
    { group: "model_not_found", count: 1, ...LAST },
  ];
  expect(countErrors(data)).toBe(1);
});
