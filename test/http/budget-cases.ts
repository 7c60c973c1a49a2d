import { error } from "./failure-cases.ts";
import type { Cases } from "./failure-cases.ts";

const stop = { "x-should-retry": "false" };
const soon = { "retry-after": "1", "x-should-retry": "true" };
const REACHED = {
  kind: "budget_exceeded",
  scope: "organization",
  budgetId: "lim_1",
  unit: "dollars",
  window: "60m",
  limit: 100,
  required: 4,
} as const;

/** Budgets, with and without running requests in the way. */
export const BUDGET_CASES = {
  budget_exceeded: [
    [
      { ...REACHED, left: 3, held: 0, resetsAt: Date.UTC(2026, 10, 23), onlyHolds: false },
      402,
      error(
        "insufficient_balance",
        "budget_exceeded",
        "The budget of 100 micro-credits in any 60 minutes for your organization has 3 left, and this request needs at least 4. New requests can use this budget again from 2026-11-23T00:00:00.000Z.",
        {
          scope: "organization",
          budget_id: "lim_1",
          window: "60m",
          limit_micro: 100,
          left_micro: 3,
          required_micro: 4,
          resets_at: "2026-11-23T00:00:00.000Z",
        },
      ),
      stop,
    ],
    [
      {
        ...REACHED,
        scope: "end_user",
        unit: "requests",
        window: "total",
        left: 1,
        held: 1,
        resetsAt: null,
        onlyHolds: true,
      },
      429,
      error(
        "api_error",
        "end_user_quota_exceeded",
        "The budget of 100 requests in total for this end user has 1 left, of which running requests hold 1, and this request needs at least 4. Please retry after 1s.",
        {
          scope: "end_user",
          budget_id: "lim_1",
          window: "total",
          limit_requests: 100,
          left_requests: 1,
          required_requests: 4,
          held_requests: 1,
        },
      ),
      soon,
    ],
  ],
} satisfies Partial<Cases>;
