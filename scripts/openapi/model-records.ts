import * as z from "zod";
import { CALL_KIND_NAMES } from "../../src/shared/kinds.ts";
import { fillUnitRecord, UNITS } from "../../src/shared/usage.ts";
import { count, record, time } from "./fields.ts";

/** Dollars as text without an exponent. */
const dollarsText = z.string().regex(/^\d+(?:\.\d*[1-9])?$/);
const tokenPrices = {
  prompt: dollarsText,
  completion: dollarsText,
  input_cache_read: dollarsText,
  input_cache_write: dollarsText,
  ...fillUnitRecord(UNITS, dollarsText.optional()),
};
export const model = record("Model", {
  id: z.string().min(1),
  object: z.literal("model"),
  created: z.int().min(1).describe("Unix seconds."),
  display_name: z.string().min(1),
  name: z.string().min(1),
  canonical_slug: z.string().min(1).describe("The model's ID, even for an alias."),
  owned_by: z.string().min(1),
  kind: z.enum(CALL_KIND_NAMES),
  context_length: z.int().min(1).describe("Tokens."),
  max_output_tokens: z.int().min(1).nullable(),
  input_modalities: z.array(z.enum(["text", "image"])).min(1),
  architecture: z.strictObject({
    modality: z.string(),
    input_modalities: z.array(z.string()),
    output_modalities: z.array(z.string()),
    tokenizer: z.string(),
    instruct_type: z.null(),
  }),
  top_provider: z.strictObject({
    context_length: count,
    max_completion_tokens: count.nullable(),
    is_moderated: z.boolean(),
  }),
  per_request_limits: z.null(),
  default_parameters: z.null(),
  supported_voices: z.null(),
  links: z.strictObject({ details: z.string() }),
  supported_parameters: z.array(z.string().min(1)).min(1),
  pricing: z.strictObject(tokenPrices).describe("The caller's price in dollars per token."),
  next_price: z
    .strictObject({ from: time, ...tokenPrices })
    .nullable()
    .describe("The next announced price; null if there is none."),
  regions: z.array(z.string()).min(1),
  providers: z
    .array(z.string())
    .min(1)
    .describe("Providers that can serve the model, in the order of preference."),
  status: z
    .enum(["operational", "degraded", "unavailable"])
    .describe(
      "`degraded` if some of its providers are in cooldown after errors, `unavailable` if all are.",
    ),
  alias_of: z.string().optional().describe("For an alias: its current model."),
  aliases: z.array(z.string()).optional().describe("For a model: its aliases."),
});
const speed = z
  .strictObject({ p50: z.number(), p75: z.number(), p90: z.number(), p99: z.number() })
  .nullable();
const notMeasured = z.null().describe("Not measured.");
const { pricing, supported_parameters } = model.shape;
export const modelEndpoints = record("ModelEndpoints", {
  data: z
    .strictObject({
      id: z.string(),
      name: z.string(),
      created: count,
      description: z.literal(""),
      architecture: model.shape.architecture,
      endpoints: z.array(
        z.strictObject({
          name: z.string(),
          model_id: z.string(),
          model_name: z.string(),
          provider_name: z.string(),
          tag: z.string().describe("The provider's ID in `provider.only` and `provider.order`."),
          status: z
            .union([z.literal(0), z.literal(-1)])
            .describe("0, or -1 while requests avoid the provider because it fails."),
          data_region: z.string(),
          context_length: count,
          max_completion_tokens: count.nullable(),
          max_prompt_tokens: z.null(),
          pricing,
          quantization: z.null(),
          supported_parameters,
          supports_implicit_caching: z.boolean(),
          supports_tool_choice: z.strictObject({
            auto: z.boolean(),
            none: z.boolean(),
            required: z.boolean(),
            function: z.boolean(),
          }),
          latency_last_30m: speed.describe(
            "Milliseconds from the call to the first byte of a stream, of all customers in this region. Null for fewer than 20 requests or 3 organizations.",
          ),
          throughput_last_30m: speed.describe(
            "Output tokens per second, measured in the same way.",
          ),
          uptime_last_5m: notMeasured,
          uptime_last_30m: notMeasured,
          uptime_last_1d: notMeasured,
        }),
      ),
    })
    .describe("OpenRouter's format."),
});
export const models = record("Models", {
  object: z.literal("list"),
  data: z.array(model),
  total_count: count,
  links: z.strictObject({ next: z.null() }),
});
const messagesModel = record("MessagesModel", {
  type: z.literal("model"),
  id: z.string(),
  display_name: z.string(),
  created_at: time,
  lifecycle: z.literal("active"),
  line: z.null(),
  max_input_tokens: count,
  max_tokens: count.nullable(),
  deprecated_at: z.null(),
  retires_at: z.null(),
  capabilities: z.null(),
});
const messagesModels = record("MessagesModels", {
  data: z.array(messagesModel),
  has_more: z.boolean(),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
});
/**
 * The format is OpenAI's, or Anthropic's for clients that send `anthropic-version` or `x-api-key`.
 */
export const listedModels = z.union([models, messagesModels]);
export const listedModel = z.union([model, messagesModel]);
