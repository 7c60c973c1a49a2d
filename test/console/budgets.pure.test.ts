import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  budgetText,
  replaceBudget,
  findMostUsedBudget,
  budgetFormValues,
} from "../../src/console/browser/lib/budgets.ts";
import { findRemedyForFailedRequest } from "../../src/console/browser/lib/remedies.ts";
import { budgetsSchema, budgetsView, budgetsFromFields } from "../../src/shared/budgets.ts";
import { BUDGET_ERROR_RESPONSES } from "../../src/shared/http/money-errors.ts";

const limit = fc.oneof(
  fc.record({ limit_dollars: fc.integer({ min: 0, max: 10 ** 12 }).map((n) => n / 1e6) }),
  fc.record({ limit_tokens: fc.integer({ min: 0, max: 1e12 }) }),
  fc.record({ limit_requests: fc.integer({ min: 0, max: 1e12 }) }),
);
const rest = fc.record({
  window: fc.constantFrom("1m", "7m", "1440m", "day", "week", "month", "total"),
  models: fc.constantFrom(null, ["sandbox/echo"], ["a/*", "b/c"]),
  alert_at: fc.constantFrom(null, 0, 0.29, 0.333333, 0.8, 1),
});
const entry = fc.tuple(limit, rest).map(([amount, others]) => Object.assign(others, amount));
const lists = fc.uniqueArray(entry, {
  maxLength: 4,
  selector: (one) => JSON.stringify([Object.keys(one).at(-1), one.window, one.models]),
});
/** Returns the list as the API stores and returns it. */
const stored = (list: unknown) => budgetsView(budgetsFromFields(budgetsSchema(9).parse(list)));

describe("a list of budgets in the console", () => {
  it("keeps all other budgets when a person saves or removes a budget", () => {
    fc.assert(
      fc.property(lists, fc.nat(), (list, at) => {
        const budgets = stored(list);
        const edited = budgets[at % Math.max(1, budgets.length)];
        if (edited === undefined) return;
        const others = budgets.filter((one) => one !== edited);
        expect(stored(replaceBudget(budgets, edited, null))).toEqual(others);
        const saved = stored(replaceBudget(budgets, edited, budgetFormValues(edited)));
        expect(saved).toEqual([edited, ...others]);
      }),
    );
  });

  it("accepts pasted amounts with a dollar sign and separators", () => {
    const typed = { ...budgetFormValues(undefined), amount: "$1,000.50", window: "60m" };
    expect(stored(replaceBudget([], undefined, typed))).toMatchObject([
      { limit_dollars: 1000.5, window: "60m", models: null, alert_at: 0.8 },
    ]);
  });

  it("shows a budget's usage, limit and window in one text", () => {
    const [budget] = stored([{ limit_dollars: 20, window: "60m" }]);
    if (budget === undefined) throw new Error("no budget");
    expect(budgetText(budget)).toBe("$20.00 in any 60 minutes");
    const counts = { usage: 0.123_456, held: 0.4, limit_remaining: 0, resets_at: null };
    const status = { ...budget, ...counts, scope: "key", counting_since: "" } as const;
    expect(budgetText(status)).toBe("$0.13 of $20.00 in any 60 minutes, $0.40 on hold");
    const [tokens] = stored([{ limit_tokens: 1, window: "total" }]);
    expect(tokens && budgetText(tokens)).toBe("1 token in total");
  });
});

it.each([
  ["organization", ["settings"]],
  ["key", ["keys", "key_1"]],
  ["session", ["keys"]],
  ["end_user", ["end-users", "ann"]],
] as const)(
  "a request rejected by a budget of the %s links to the page that changes the budget",
  (scope, path) => {
    const { message, status, code } = BUDGET_ERROR_RESPONSES.budget_exceeded({
      kind: "budget_exceeded",
      scope,
      budgetId: "lim_1",
      unit: "dollars",
      window: "60m",
      limit: 1,
      left: 0,
      held: 0,
      required: 1,
      onlyHolds: false,
      resetsAt: 0,
    });
    const cause = { status, code, message, keyId: "key_1", externalId: "ann" };
    const [text, action, call] = findRemedyForFailedRequest(cause);
    expect(text).toContain("budget is used up");
    expect(action?.[1][0]).toEqual(path);
    expect(call).toBeDefined();
  },
);

const key = (fields: object) => fields as Parameters<typeof findMostUsedBudget>[0];

describe("the console's list of keys", () => {
  const budgets = [
    { id: "a", limit_requests: 10, window: "60m", models: null },
    { id: "b", limit_dollars: 2, window: "total", models: null },
  ];

  it("shows a key's most used budget with its unit and window", () => {
    expect(findMostUsedBudget(key({ budgets, budgets_used: { a: 9, b: 1 } }))?.label).toBe(
      "9 requests of 10 requests in any 60 minutes",
    );
    const own = { budget_dollars: 1, budget_period: "day", spent_dollars: 0.95 };
    expect(findMostUsedBudget(key({ ...own, budgets, budgets_used: { a: 9 } }))?.label).toBe(
      "$0.95 of $1.00 a day",
    );
  });

  it("shows a limit of 0 as used up, and an empty cell for a key without a budget", () => {
    expect(findMostUsedBudget(key({ budget_dollars: 0, budgets }))?.label).toBe("$0.00 of $0.00");
    expect(findMostUsedBudget(key({}))).toBeNull();
  });
});
