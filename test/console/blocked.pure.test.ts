import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findBlock } from "../../src/console/browser/lib/blocked.ts";

const NOW = Date.parse("2026-11-27T12:00:00Z");
const dollars = fc.integer({ min: 0, max: 3 });
const quota = fc.option(dollars, { nil: null });
const budget = fc.record({
  id: fc.constant("lim_1"),
  scope: fc.constant("end_user" as const),
  limit_dollars: dollars,
  usage: dollars,
  held: dollars,
  limit_remaining: dollars,
  window: fc.constantFrom("60m", "day", "total"),
  models: fc.constantFrom(null, ["sandbox/*"]),
  on_exceeded: fc.constant("reject" as const),
  alert_at: fc.constant(null),
  resets_at: fc.constantFrom(null, "2026-11-28T00:00:00.000Z"),
  counting_since: fc.constant("2026-11-01T00:00:00.000Z"),
});
const user = fc.record({
  external_id: fc.constant("ann"),
  daily_quota_dollars: quota,
  daily_spend_dollars: dollars,
  monthly_quota_dollars: quota,
  monthly_spend_dollars: dollars,
  budgets: fc.array(budget, { maxLength: 2 }),
});
const pause = (subject: string) => ({
  id: "pau_1",
  scope: "end_user" as const,
  subject,
  reason: "Review",
  until: null,
  stop_running: false,
  source: "member" as const,
  created_by: { kind: "member" as const, id: "m" },
  created_at: "2026-11-27T00:00:00.000Z",
});
const isUsedUp = (spent: number, limit: number | null): boolean => limit !== null && spent >= limit;

describe("an end user in the console", () => {
  it("appears as blocked exactly if a quota or a budget of all models is used up", () => {
    fc.assert(
      fc.property(user, (one) => {
        const expected =
          isUsedUp(one.daily_spend_dollars, one.daily_quota_dollars) ||
          isUsedUp(one.monthly_spend_dollars, one.monthly_quota_dollars) ||
          one.budgets.some((of) => of.models === null && isUsedUp(of.usage, of.limit_dollars));
        expect(findBlock(one, [pause("bob")], NOW)?.state).toBe(expected ? "blocked" : undefined);
        expect(findBlock(one, [pause("ann")], NOW)).toMatchObject({
          state: "paused",
          why: "Review",
        });
      }),
    );
  });

  it.each([
    [1, 1, "until 1 Dec, 00:00 UTC", "the monthly quota is used up"],
    [1, 5, "until 28 Nov, 00:00 UTC", "the daily quota is used up"],
    [null, 0, "until the monthly quota is raised", "the monthly quota is used up"],
  ])("appears as blocked, with the quotas %s and %s, %s", (daily, monthly, until, why) => {
    const spent = { external_id: "ann", daily_spend_dollars: 1, monthly_spend_dollars: 2 };
    const quotas = { daily_quota_dollars: daily, monthly_quota_dollars: monthly, budgets: [] };
    expect(findBlock({ ...spent, ...quotas }, [], NOW)).toEqual({ state: "blocked", until, why });
  });
});
