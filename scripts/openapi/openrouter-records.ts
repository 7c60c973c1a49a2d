import * as z from "zod";
import { count, dollars, record, time } from "./fields.ts";
import { skippedRoutes } from "./usage-records.ts";

/** Use of a customer's own provider keys, which this gateway doesn't support. */

const noOwnProviders = {
  byok_usage: z.literal(0),
  byok_usage_daily: z.literal(0),
  byok_usage_weekly: z.literal(0),
  byok_usage_monthly: z.literal(0),
  include_byok_in_limit: z.literal(false),
};
const keyBudget = z.strictObject({
  scope: z.string().describe("`key_limit`, `api_key`, `member`, `workspace` and others."),
  budget_id: z.string().nullable(),
  guardrail_id: z.null(),
  include_byok: z.literal(false),
  limit_usd: z.number(),
  spend_usd: z.number().describe("Charges in the window and running requests."),
  remaining_usd: z.number().describe("The difference of both."),
  reset_interval: z.string().nullable().describe("`daily`, `weekly`, `monthly`, or minutes."),
  resets_at: time.nullable(),
});

/** `data` of `GET /v1/key`. */
export const keyData = record("KeyData", {
  label: z.string().describe("The name of the key, or the ID of the session."),
  limit: dollars.nullable().describe("The budget; null without one."),
  limit_remaining: dollars.nullable(),
  limit_reset: z.enum(["daily", "weekly", "monthly"]).nullable(),
  budgets: z.array(keyBudget).describe("The dollar budgets that apply to its requests."),
  effective_budget: keyBudget.nullable().describe("The budget with the fewest dollars left."),
  usage: dollars.describe("All charges of the key or session."),
  usage_daily: dollars.describe("Charges of the current UTC day."),
  usage_weekly: dollars.describe("Charges since Monday, UTC."),
  usage_monthly: dollars,
  ...noOwnProviders,
  is_free_tier: z.literal(false),
  is_management_key: z.literal(false),
  is_provisioning_key: z.literal(false),
  expires_at: time.nullable(),
  rate_limit: z.strictObject({ requests: count, interval: z.string(), note: z.string() }),
  creator_user_id: z.string().nullable().describe("The member of the key."),
  organization_id: z.string(),
  workspace_id: z.null(),
  allowed_data_regions: z.array(z.string()),
  free_model_daily_requests: z.strictObject({ limit: count, remaining: count, used: count }),
}).describe("The same key in OpenRouter's format.");

/** `data` of `GET /v1/credits`. */
export const creditsData = record("CreditsData", {
  total_credits: dollars.describe("The sum of the balance and all charges."),
  total_usage: dollars.describe("All charges."),
}).describe("The balance in OpenRouter's format: the difference of both numbers.");

const nothing = z.null().describe("Always null.");
const text = z.string().nullable();
const tokens = count.nullable();
const ms = z.number().nullable().describe("Milliseconds.");
const generationData = record("GenerationData", {
  id: z.string(),
  request_id: z.string(),
  created_at: time,
  model: z.string(),
  provider_name: text,
  data_region: z.string(),
  external_user: text,
  finish_reason: text,
  total_cost: dollars.describe("The charge."),
  usage: dollars.describe("The charge."),
  latency: ms,
  generation_time: ms,
  streamed: z.boolean().nullable(),
  cancelled: z.boolean(),
  tokens_prompt: tokens,
  tokens_completion: tokens,
  native_tokens_prompt: tokens,
  native_tokens_completion: tokens,
  native_tokens_reasoning: tokens,
  native_tokens_cached: tokens,
  provider_responses: z.array(
    z.strictObject({
      provider_name: z.string(),
      endpoint_id: z.string().optional().describe("The route of a failed attempt."),
      status: z.int().nullable(),
      latency: ms,
      is_byok: z.literal(false),
    }),
  ),
  skipped: skippedRoutes,
  origin: z.literal(""),
  is_byok: z.literal(false),
  upstream_id: nothing,
  api_type: nothing,
  router: nothing,
  native_finish_reason: nothing,
  session_id: nothing,
  service_tier: nothing,
  user_agent: nothing,
  http_referer: nothing,
  preset_id: nothing,
  workspace_id: nothing,
  web_search_engine: nothing,
  response_cache_source_id: nothing,
  upstream_inference_cost: nothing,
  cache_discount: nothing,
  moderation_latency: nothing,
  native_tokens_completion_images: nothing,
  num_media_prompt: nothing,
  num_input_audio_prompt: nothing,
  num_media_completion: nothing,
  num_search_results: nothing,
  num_fetches: nothing,
  app_id: nothing,
});
export const oneGeneration = record("OneGeneration", { data: generationData });
