import * as z from "zod";
import { BUDGET_SCOPES } from "../../src/shared/budgets.ts";
import { dollars, record, time } from "./fields.ts";

const budgetFields = {
  id: z.string().describe("Stays the same as long as the unit, window and models do."),
  limit_dollars: dollars.optional(),
  limit_tokens: z.int().optional().describe("Prompt and output tokens."),
  limit_requests: z.int().optional(),
  window: z
    .string()
    .describe(
      "`1m` to `1440m` for any period of minutes, `day`, `week`, `month` (UTC) or `total`.",
    ),
  models: z.array(z.string()).nullable().describe("Model IDs and `author/*`; null for all."),
  on_exceeded: z.enum(["reject", "pause"]),
  alert_at: z.number().nullable().describe("Fraction of the limit that emits `budget.alert`."),
};

export const budget = record("Budget", budgetFields);

/** A budget with its current use. */
export const budgetStatus = record("BudgetStatus", {
  scope: z.enum(BUDGET_SCOPES),
  ...budgetFields,
  usage: z.number().describe("Dollars, tokens or requests in the window now."),
  held: z.number().describe("Reserved by running requests."),
  limit_remaining: z.number(),
  resets_at: time
    .nullable()
    .describe("Time when more of the budget is free; null if it doesn't reset."),
  counting_since: time,
});

/** The budget with the fewest dollars left. */
export const effectiveBudget = z
  .strictObject({
    scope: z.enum(BUDGET_SCOPES),
    limit: dollars,
    window: z.string(),
    limit_remaining: dollars,
    limit_reset: time.nullable(),
    usage: dollars,
  })
  .nullable()
  .describe("The budget with the fewest dollars left; null without a budget.");
