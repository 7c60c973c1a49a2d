import * as z from "zod";
import { budgetStatus } from "./budget-records.ts";
import { EVENT_TYPES } from "../../src/shared/event.ts";
import { freshMemberKey } from "./key-records.ts";
import { autoTopUp } from "./payment-records.ts";

import { micros, dollars, count, policy, time, uuid, record, paged, loose } from "./fields.ts";

/**
 * Schemas of the gateway's responses in the OpenAPI document, which contract tests also check. They
 * are strict: responses have no other fields.
 */
/** The charge, on every endpoint. */
export const costs = { cost: dollars.describe("The charge in dollars."), cost_micro: count };
const promptDetails = z.strictObject({ cached_tokens: count, cache_write_tokens: count });
const completionDetails = z.strictObject({ reasoning_tokens: count });
export const completionUsage = record("CompletionUsage", {
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: promptDetails,
  completion_tokens_details: completionDetails,
  ...costs,
});
const toolCall = z.looseObject({ id: z.string(), type: z.literal("function") });
const assistantMessage = z.looseObject({
  role: z.literal("assistant"),
  content: z.string().nullable(),
  refusal: z.string().nullable(),
  tool_calls: z.array(toolCall).optional(),
  reasoning_content: z.string().optional(),
  reasoning: z
    .string()
    .optional()
    .describe("The same text, under the name that OpenRouter's clients read."),
});
const choice = z.looseObject({
  index: count,
  message: assistantMessage,
  logprobs: z.looseObject({}).nullable(),
  finish_reason: z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]),
});
/** OpenAI's format. Fields that a provider adds are kept. */
export const completion = loose("ChatCompletion", {
  id: z.string(),
  object: z.literal("chat.completion"),
  created: count,
  model: z.string(),
  provider: z.string().optional().describe("The provider that served the request."),
  choices: z.array(choice),
  usage: completionUsage,
});

/** OpenAI's format, which repeats the request. */
export const response = loose("Response", {
  id: z.string(),
  object: z.literal("response"),
  created_at: count,
  completed_at: count.nullable(),
  status: z.enum(["completed", "incomplete", "failed"]),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
  incomplete_details: z.looseObject({ reason: z.string() }).nullable(),
  model: z.string(),
  output: z.array(z.looseObject({ id: z.string(), type: z.string(), status: z.string() })),
  usage: z.looseObject({
    input_tokens: count,
    output_tokens: count,
    total_tokens: count,
    cost: costs.cost.optional().describe("Dollars; absent from older stored responses."),
    cost_micro: count,
  }),
});
export const deletedResponse = record("DeletedResponse", {
  id: z.string(),
  object: z.literal("response.deleted"),
  deleted: z.literal(true),
});
export const inputItems = record("InputItems", {
  object: z.literal("list"),
  data: z.array(z.looseObject({ id: z.string(), type: z.string() })),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
});

/** OpenAI's format of legacy completions. */
export const textCompletion = loose("TextCompletion", {
  id: z.string(),
  object: z.literal("text_completion"),
  created: count,
  model: z.string(),
  provider: z.string().optional(),
  choices: z.array(
    z.looseObject({ index: count, text: z.string(), finish_reason: z.string().nullable() }),
  ),
  usage: completionUsage,
});
/** Anthropic's format. Content blocks are passed on unchanged. */
export const message = loose("Message", {
  id: z.string(),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string(),
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string().nullable(),
  stop_sequence: z.string().nullable(),
  usage: z.looseObject({ input_tokens: count, output_tokens: count, ...costs }),
});
export const counted = loose("CountedTokens", { input_tokens: count });

const embedding = z.strictObject({
  object: z.literal("embedding"),
  index: count,
  embedding: z.union([z.array(z.number()), z.string()]).describe("Numbers, or base64 of floats."),
});
export const embeddings = record("Embeddings", {
  id: z.string(),
  object: z.literal("list"),
  data: z.array(embedding),
  model: z.string(),
  usage: z.strictObject({ prompt_tokens: count, total_tokens: count, ...costs }),
});

export const balance = loose("Balance", {
  credits_micro: micros,
  credits_dollars: dollars,
  held_micro: micros,
  owed_micro: micros.describe("Credits owed after refunds and disputes."),
  available_micro: micros,
});

const quota = dollars.nullable().describe("Dollars; null for none.");
export const endUser = record("EndUser", {
  id: uuid,
  external_id: z.string(),
  monthly_quota_dollars: quota,
  daily_quota_dollars: quota,
  alert_threshold: z.number(),
  monthly_spend_dollars: dollars,
  daily_spend_dollars: dollars,
  budgets: z.array(budgetStatus),
  created_at: time,
});
export const endUsers = record("EndUsers", {
  users: z.array(endUser),
  ...paged,
  next_after: z.string().nullable().describe("Send as `after` to get the next page."),
});
export const deletedEndUser = record("DeletedEndUser", {
  external_id: z.string(),
  deleted: z.literal(true),
});
export const settings = record("Settings", {
  default_user_monthly_quota_dollars: quota,
  default_user_daily_quota_dollars: quota,
  default_alert_threshold: z.number(),
  low_balance_threshold_dollars: quota,
  keep_responses_hours: z
    .int()
    .min(0)
    .max(720)
    .describe("Hours that responses of /v1/responses are stored; 0 for none."),
  auto_top_up: autoTopUp.nullable().describe("Settings of automatic top-up; null if it's off."),
  tag_keys: z
    .array(z.string())
    .max(4)
    .describe("The tag keys whose daily totals `GET /v1/usage` returns."),
  budgets: z.array(budgetStatus).describe("Budgets of the organization."),
  policy,
  operator_policy: policy.describe("The operator's policy. Both must allow a route."),
  max_concurrent: z
    .int()
    .nullable()
    .describe("Requests of all keys together that run at the same time; null for any number."),
});

const alert = record("Alert", {
  id: z.string(),
  kind: z.enum(["user_daily", "user_monthly", "low_balance"]),
  external_id: z.string().nullable(),
  period: z.string().nullable(),
  threshold: z.number().nullable(),
  limit_micro: micros.nullable(),
  value_micro: micros,
  created_at: time,
});
export const alerts = record("Alerts", { alerts: z.array(alert), ...paged });

export const actor = z.union([
  z.strictObject({ kind: z.enum(["key", "session", "member", "operator"]), id: z.string() }),
  z.strictObject({ kind: z.literal("system"), id: z.null() }),
]);
const event = record("Event", {
  id: z.string(),
  type: z.enum(EVENT_TYPES),
  created_at: time,
  actor,
  subject: z.string().describe("The ID of the changed object."),
  data: z.looseObject({}),
});
export const events = record("Events", {
  events: z.array(event),
  next_after: z.string().nullable().describe("Send as `after` to get the next page."),
  dropped: z.strictObject({ events: count, until: time }).nullable(),
});

const organizationFields = {
  id: uuid,
  name: z.string(),
  slug: z.string(),
  region: z.string(),
  is_personal: z.boolean(),
  created_at: time,
};
export const organization = loose("Organization", organizationFields);
const statusFields = {
  credits_micro: micros.nullable(),
  held_micro: micros.nullable(),
  open_holds: count.nullable(),
};
const operatorsOrganization = {
  ...organizationFields,
  status: z.enum(["active", "suspended"]),
  rpm_limit: z.int().nullable(),
  price_list: z.string().nullable(),
};
const heldOrganization = record("OrganizationAndMoney", {
  ...operatorsOrganization,
  ...statusFields,
  operator_policy: policy,
});
export const closableOrganization = record("OrganizationAndClosing", {
  ...heldOrganization.shape,
  closed_at: time.nullable(),
  restorable_until: time
    .nullable()
    .describe(
      "When a closed organization is removed permanently; null if it isn't closed, or was removed.",
    ),
  suspension: z
    .strictObject({ at: time, operator: z.string(), reason: z.string().nullable() })
    .nullable()
    .describe("Null if the organization isn't suspended, or the operator isn't known."),
});
export const heldOrganizations = record("Organizations", {
  organizations: z.array(
    record("ListedOrganization", {
      ...operatorsOrganization,
      ...z.object({ ...statusFields, operator_policy: policy }).partial().shape,
      owner_email: z.string().nullable(),
      balance_micro: micros
        .nullable()
        .describe("The balance in the database, which is read without a call to the wallet."),
      spend_30d_micro: micros.describe("Spend of this UTC day and the 29 days before."),
      days_left: count
        .nullable()
        .describe(
          "Estimated from the spend of the last seven whole UTC days. Null if nothing was spent.",
        ),
      last_used_at: time.nullable().describe("Last use of any of its keys."),
    }),
  ),
  ...paged,
});
export const member = record("Member", {
  id: uuid,
  email: z.string(),
  role: z.enum(["owner", "admin", "billing", "member"]),
  created_at: time,
});
export const members = record("Members", { members: z.array(member) });
export const lostOrganizations = record("LostOrganizations", {
  organizations: z.array(
    record("LostOrganization", {
      id: z.string(),
      balance_micro: micros,
      updated_at: time,
    }),
  ),
});
export const createdOrganization = record("CreatedOrganization", {
  organization: heldOrganization,
  member,
  key: freshMemberKey,
});
export const deleted = record("Deleted", { id: z.string(), deleted: z.literal(true) });
export const credits = record("Credits", { credits_micro: micros });
const ledgerRow = record("LedgerRow", {
  seq: count,
  kind: z.enum(["usage", "credit", "expire", "shortfall", "rollup"]),
  amount_micro: micros,
  balance_micro: micros,
  created_at: time,
  reference: z.string().nullable(),
  generation_id: z.string().nullable(),
});
export const ledger = record("Ledger", { rows: z.array(ledgerRow), next_after_seq: count });
const compared = z.union([z.number(), z.string(), z.null()]);
export const reconciliation = record("Reconciliation", {
  ...statusFields,
  differences: z.array(z.strictObject({ what: z.string(), expected: compared, found: compared })),
  rows_read: count,
  next_after: z.string().optional(),
});
export const rebuilt = record("RebuiltWallet", statusFields);
export const settlement = record("Settlement", {
  result: z.enum(["settled", "voided", "unknown"]),
  charged_micro: micros,
  shortfall_micro: micros,
});
const outbox = z.looseObject({
  name: z.string(),
  waiting: count.nullable(),
  dead: count.nullable(),
  parked: count.nullable(),
  oldest_ms: count.nullable(),
});
export const health = loose("Health", {
  region: z.string(),
  version: z.string(),
  aliases: z.record(z.string(), z.string()),
  problems: z
    .array(z.strictObject({ kind: z.string(), message: z.string() }))
    .describe("The region's problems; empty if there are none."),
  book: z.boolean(),
  wallets: z
    .strictObject({ asked: count, unavailable: z.array(z.string()) })
    .describe(
      "Wallets that didn't open in the last sweep, and some others, which this call checks again.",
    ),
  peers: z.array(
    z.strictObject({
      region: z.string(),
      url: z.string().nullable(),
      answers: z.boolean(),
      rtt_ms: count
        .nullable()
        .describe("Round-trip time of this call; null if the region doesn't respond."),
      last_ok_at: time
        .nullable()
        .describe("Last success seen by the responding isolate; null if none since its start."),
    }),
  ),
  outboxes: z.array(outbox),
  sweep: z
    .strictObject({
      at: time,
      holds_open: count,
      hold_oldest_ms: count,
      wallets_unpublished: count,
      wallets_in_conflict: count,
      wallets_unavailable: count,
      wallet_bytes_largest: count,
      book_bytes: count,
      bytes_max: count,
    })
    .nullable()
    .describe("Results of the last complete sweep over the wallets; null before the first."),
  payments_swept_at: time
    .nullable()
    .describe("The last good payments sweep, every 3 minutes; null before the first."),
  breakers: z.array(z.strictObject({ route: z.string(), state: z.string(), until: time })),
});
