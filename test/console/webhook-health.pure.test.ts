import { expect, it } from "vitest";
import { webhookHealth } from "../../console/lib/webhook-health.ts";
import type { Sent } from "../../console/lib/webhook-health.ts";

const NOW = Date.parse("2026-11-26T12:00:00Z");
const at = (hour: number): string => new Date(NOW - hour * 3_600_000).toISOString();
const sent = (state: Sent["state"], hour: number, tried: number | null = hour): Sent => ({
  state,
  created_at: at(hour),
  last_attempt_at: tried === null ? null : at(tried),
});

it("is failing since the oldest of what was tried after the last success, and well once one arrived", () => {
  const failing = [sent("pending", 1, 0.5), sent("failed", 2), sent("delivered", 5)];
  expect(webhookHealth(failing, NOW)).toEqual({
    waiting: 1,
    delivered: 1,
    failed: 1,
    failingSince: at(2),
  });
  expect(webhookHealth([sent("delivered", 0.1), ...failing], NOW).failingSince).toBeNull();
});

it("what waits untried is no failure, and what is older than a day is in no count of the day", () => {
  expect(webhookHealth([sent("pending", 1, null), sent("failed", 30, 40)], NOW)).toEqual({
    waiting: 1,
    delivered: 0,
    failed: 0,
    failingSince: at(30),
  });
  expect(webhookHealth([], NOW).failingSince).toBeNull();
});
