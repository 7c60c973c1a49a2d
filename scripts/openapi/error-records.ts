import * as z from "zod";
import { BUDGET_SCOPES } from "../../src/shared/budgets.ts";
import { POLICY_FIELDS, POLICY_SCOPES } from "../../src/shared/policy.ts";
import { micros, record, time } from "./fields.ts";

const count = z.int().optional();

/** An error's numbers, which are in `error` in OpenAI's format and in `details` in Anthropic's. */
const numbers = {
  retry_after: z.int().optional().describe("Seconds."),
  balance_micro: micros.optional(),
  required_micro: micros.optional(),
  held_micro: micros.optional(),
  left_micro: micros.optional(),
  quota_micro: micros.optional(),
  budget_micro: micros.optional(),
  scope: z
    .enum([...BUDGET_SCOPES, ...POLICY_SCOPES.slice(0, 1)])
    .optional()
    .describe("The owner of the budget, policy or pause."),
  budget_id: z.string().optional(),
  window: z.string().optional().describe("The budget's window."),
  limit_micro: micros.optional(),
  limit_tokens: count,
  left_tokens: count,
  required_tokens: count,
  held_tokens: count,
  limit_requests: count,
  left_requests: count,
  required_requests: count,
  held_requests: count,
  resets_at: time.optional(),
  generation_id: z.string().optional(),
  key_id: z.string().optional(),
  pause_id: z.string().optional(),
  reason: z.string().optional().describe("The reason of the pause."),
  until: time.optional().describe("The end of the pause."),
  policy_field: z.enum(POLICY_FIELDS).optional().describe("The policy list that allows no route."),
  cost_micro: micros.optional().describe("Amount charged despite the error."),
};
export const errorObject = record("ErrorObject", {
  message: z.string().min(1),
  type: z.string().min(1),
  param: z.string().nullable(),
  code: z.string().nullable(),
  ...numbers,
  docs_url: z.string().optional(),
});
export const error = record("Error", { error: errorObject });
/** Anthropic's format. `details` has the gateway's own code and numbers. */
const messagesErrorObject = z.strictObject({
  type: z.literal("error"),
  error: z.strictObject({
    type: z.string().min(1),
    message: z.string().min(1),
    details: z.strictObject({
      error_code: z.string().min(1),
      param: z.string().optional(),
      unsupported: z.array(z.string()).optional(),
      ...numbers,
    }),
  }),
  request_id: z.string(),
});
export const messagesError = messagesErrorObject.meta({ id: "MessagesError" });
