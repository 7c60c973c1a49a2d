import { expect, it } from "vitest";
import { DAYS, demoRequestsOf } from "../../scripts/demo-uses.ts";
import { failureBatchSchema } from "../../src/shared/failed-request.ts";

const NOW = Date.parse("2026-11-28T12:00:00Z");
const requests = Array.from({ length: DAYS }, (_, day) =>
  demoRequestsOf(day, NOW, ["key_1", "key_2"]),
).flat();
const failed = requests.flatMap((one) => (one.failed === null ? [] : [one]));

it("npm start -- --demo stores the model and the reason of each failed, uncharged request", () => {
  expect(failed.length).toBeGreaterThan(30);
  expect(failed).toHaveLength(requests.filter(({ settlement }) => settlement === null).length);
  const records = failed.map((one) => one.failed);
  for (let at = 0; at < records.length; at += 100) {
    failureBatchSchema.parse({ requests: records.slice(at, at + 100), counts: [] });
  }
  for (const { hold, heldAt, endedAt, failed: record } of failed) {
    expect(record).toMatchObject({ id: hold.id, at: heldAt, model: hold.model?.id });
    expect(record?.attempts.length).toBeGreaterThan(0);
    expect(heldAt + (record?.durationMs ?? 0)).toBe(endedAt);
  }
});

it("npm start -- --demo creates several kinds of failures, each with its documented error", () => {
  const codes = new Map(
    failed.map(({ failed: record }) => [record?.attempts[0]?.why, record?.error.code]),
  );
  expect([...codes].toSorted(([a = ""], [b = ""]) => a.localeCompare(b))).toEqual([
    ["connection", "upstream_error"],
    ["http_500", "upstream_error"],
    ["http_503", "upstream_error"],
    ["overloaded", "upstream_overloaded"],
  ]);
});
