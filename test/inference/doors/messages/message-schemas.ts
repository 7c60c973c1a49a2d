import * as z from "zod";

/**
 * A whole message of this door, strictly: a field that is not named fails.
 * (platform.claude.com, Messages; @anthropic-ai/sdk 1.12)
 */
const count = z.int().min(0);
const block = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("text"),
    text: z.string(),
    citations: z.null().optional(),
  }),
  z.strictObject({
    type: z.literal("thinking"),
    thinking: z.string(),
    signature: z.string().min(1),
  }),
  z.strictObject({ type: z.literal("redacted_thinking"), data: z.string().min(1) }),
  z.strictObject({
    type: z.literal("tool_use"),
    id: z.string().min(1),
    name: z.string().min(1),
    input: z.looseObject({}),
    caller: z.looseObject({ type: z.literal("direct") }).optional(),
  }),
]);
export const message = z.strictObject({
  id: z.string().regex(/^msg_[0-9A-Za-z]{24}$/),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string().min(1),
  container: z.null(),
  content: z.array(block),
  stop_reason: z.enum(["end_turn", "max_tokens", "tool_use", "refusal", "stop_sequence"]),
  stop_sequence: z.string().nullable(),
  stop_details: z
    .strictObject({
      type: z.literal("refusal"),
      category: z.string().nullable(),
      explanation: z.string().nullable(),
      recommended_model: z.string().nullable().optional(),
    })
    .nullable(),
  usage: z.strictObject({
    input_tokens: count,
    cache_creation_input_tokens: count,
    cache_read_input_tokens: count,
    cache_creation: z.strictObject({
      ephemeral_5m_input_tokens: count,
      ephemeral_1h_input_tokens: count,
    }),
    output_tokens: count,
    output_tokens_details: z.strictObject({ thinking_tokens: count }),
    service_tier: z.literal("standard"),
    cost_micro: count,
  }),
});
