import { CALL_KIND_NAMES } from "../../src/shared/kinds.ts";
import { fillUnitRecord, UNITS } from "../../src/shared/usage.ts";
import { expect } from "vitest";
import * as z from "zod";

/**
 * OpenAI's response schemas (openapi.yaml 2.3.0), as strict schemas: required keys, possible nulls,
 * constants, and no unknown keys except our costs, the provider and the numbers in errors.
 */
const tokens = z.int().min(0);
const counts = { prompt_tokens: tokens, completion_tokens: tokens, total_tokens: tokens };
const details = {
  prompt_tokens_details: z
    .strictObject({
      audio_tokens: tokens,
      cached_tokens: tokens,
      text_tokens: tokens,
      image_tokens: tokens,
      cache_write_tokens: tokens,
    })
    .partial()
    .optional(),
  completion_tokens_details: z
    .strictObject({
      accepted_prediction_tokens: tokens,
      audio_tokens: tokens,
      reasoning_tokens: tokens,
      text_tokens: tokens,
      rejected_prediction_tokens: tokens,
    })
    .partial()
    .optional(),
};
const addsUp = (usage: Record<keyof typeof counts, number>): boolean =>
  usage.prompt_tokens + usage.completion_tokens === usage.total_tokens;
const costs = { cost: z.number().min(0), cost_micro: tokens };
const usage = z
  .strictObject({ ...counts, ...details, ...costs })
  .refine(addsUp, "the counts add up")
  .refine(({ cost, cost_micro }) => cost === cost_micro / 1_000_000, "both costs agree");

const called = z.strictObject({ name: z.string(), arguments: z.string() });
const toolCall = z.strictObject({
  id: z.string().min(1),
  type: z.literal("function"),
  function: called,
});
const tokenLogprob = {
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.int()).nullable(),
};
const logprobs = z.strictObject({
  content: z
    .array(z.strictObject({ ...tokenLogprob, top_logprobs: z.array(z.strictObject(tokenLogprob)) }))
    .nullable(),
  refusal: z.null(),
});
const finish = z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]);
const completionId = z.string().regex(/^chatcmpl-[0-9A-Za-z]{24}$/);
const serviceTier = z.enum(["auto", "default"]).optional();

const completion = z.strictObject({
  id: completionId,
  object: z.literal("chat.completion"),
  created: z.int(),
  model: z.string(),
  provider: z.string(),
  choices: z
    .array(
      z.strictObject({
        index: z.int().min(0),
        finish_reason: finish,
        logprobs: logprobs.nullable(),
        message: z.strictObject({
          role: z.literal("assistant"),
          content: z.string().nullable(),
          refusal: z.string().nullable(),
          tool_calls: z.array(toolCall).min(1).optional(),
        }),
      }),
    )
    .min(1),
  usage,
  service_tier: serviceTier,
  system_fingerprint: z.string().optional(),
});
export type Completion = z.infer<typeof completion>;

const chunk = z.strictObject({
  id: completionId,
  object: z.literal("chat.completion.chunk"),
  created: z.int(),
  model: z.string(),
  provider: z.string().optional(),
  choices: z.array(
    z.strictObject({
      index: z.int().min(0),
      finish_reason: finish.nullable(),
      logprobs: logprobs.nullable().optional(),
      delta: z.strictObject({
        role: z.literal("assistant").optional(),
        content: z.string().nullable().optional(),
        refusal: z.string().nullable().optional(),
        tool_calls: z
          .array(
            z.strictObject({
              index: z.int().min(0),
              id: z.string().min(1).optional(),
              type: z.literal("function").optional(),
              function: called.partial().optional(),
            }),
          )
          .length(1)
          .optional(),
      }),
    }),
  ),
  usage: usage.nullable().optional(),
  service_tier: serviceTier,
  system_fingerprint: z.string().optional(),
});
export type Chunk = z.infer<typeof chunk>;

const list = <T extends z.ZodType>(vector: T) =>
  z.strictObject({
    id: z.string().regex(/^embd-\w+$/),
    object: z.literal("list"),
    model: z.string(),
    data: z.array(
      z.strictObject({ object: z.literal("embedding"), index: z.int(), embedding: vector }),
    ),
    usage: z.strictObject({ prompt_tokens: tokens, total_tokens: tokens, ...costs }),
  });
export const floatEmbeddings = list(z.array(z.number()).min(1));
export const base64Embeddings = list(z.base64().min(1));

/** Dollars as text, without an exponent. */
const dollarsText = z.string().regex(/^\d+(?:\.\d*[1-9])?$/);

const tokenPrices = {
  prompt: dollarsText,
  completion: dollarsText,
  input_cache_read: dollarsText,
  input_cache_write: dollarsText,
  ...fillUnitRecord(UNITS, dollarsText.optional()),
};
export const model = z.strictObject({
  id: z.string().min(1),
  object: z.literal("model"),
  created: z.int().min(1),
  name: z.string().min(1),
  canonical_slug: z.string().min(1),
  display_name: z.string().min(1),
  owned_by: z.string().min(1),
  kind: z.enum(CALL_KIND_NAMES),
  context_length: z.int().min(1),
  max_output_tokens: z.int().min(1).nullable(),
  input_modalities: z.array(z.enum(["text", "image"])).min(1),
  architecture: z.strictObject({
    modality: z.string(),
    input_modalities: z.array(z.string()).min(1),
    output_modalities: z.array(z.string()).min(1),
    tokenizer: z.string(),
    instruct_type: z.null(),
  }),
  top_provider: z.strictObject({
    context_length: z.int().min(1),
    max_completion_tokens: z.int().min(1).nullable(),
    is_moderated: z.literal(false),
  }),
  per_request_limits: z.null(),
  default_parameters: z.null(),
  supported_voices: z.null(),
  links: z.strictObject({ details: z.string() }),
  supported_parameters: z.array(z.string().min(1)).min(1),
  pricing: z.strictObject(tokenPrices),
  next_price: z.nullable(z.strictObject({ from: z.string(), ...tokenPrices })),
  regions: z.array(z.enum(["eu", "us"])).min(1),
  providers: z.array(z.string()).min(1),
  status: z.enum(["operational", "degraded", "unavailable"]),
  alias_of: z.string().optional(),
  aliases: z.array(z.string()).optional(),
});
export const modelList = z.strictObject({
  object: z.literal("list"),
  data: z.array(model),
  total_count: tokens,
  links: z.strictObject({ next: z.null() }),
});

export const errorBody = z.strictObject({
  error: z.strictObject({
    message: z.string().min(1),
    type: z.string().min(1),
    param: z.string().nullable(),
    code: z.string().nullable(),
    retry_after: z.int().optional(),
    balance_micro: z.int().optional(),
    required_micro: z.int().optional(),
    held_micro: z.int().optional(),
    left_micro: z.int().optional(),
    quota_micro: z.int().optional(),
    budget_micro: z.int().optional(),
    limit_micro: z.int().optional(),
    limit_tokens: z.int().optional(),
    left_tokens: z.int().optional(),
    required_tokens: z.int().optional(),
    held_tokens: z.int().optional(),
    limit_requests: z.int().optional(),
    left_requests: z.int().optional(),
    required_requests: z.int().optional(),
    held_requests: z.int().optional(),
    scope: z.string().optional(),
    budget_id: z.string().optional(),
    window: z.string().optional(),
    resets_at: z.string().optional(),
    generation_id: z.string().optional(),
    cost_micro: z.int().optional(),
    key_id: z.string().optional(),
    policy_field: z.string().optional(),
    pause_id: z.string().optional(),
    reason: z.string().optional(),
    until: z.string().optional(),
  }),
});
export type ErrorObject = z.infer<typeof errorBody>["error"];

/** Returns the completion of a 200, checked against the schema. */
export async function completionOf(response: Response): Promise<Completion> {
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  expect(response.headers.get("content-type")).toBe("application/json");
  return completion.parse(JSON.parse(text));
}

/**
 * Returns the chunks of a complete stream, each checked against the schema. The last event must be
 * `[DONE]`.
 */
export function chunksOf(events: readonly string[]): Chunk[] {
  expect(events.at(-1)).toBe("[DONE]");
  return events.slice(0, -1).map((event) => chunk.parse(JSON.parse(event)));
}

/** Returns the text of one choice of a stream. */
export function textOf(chunks: readonly Chunk[], index = 0): string {
  return chunks
    .flatMap((one) => one.choices)
    .filter((choice) => choice.index === index)
    .map((choice) => choice.delta.content ?? "")
    .join("");
}
