import * as z from "zod";

/**
 * Strict schemas of the endpoint's message and its stream's events: unknown and missing fields fail
 * (platform.claude.com, Messages; @anthropic-ai/sdk 1.12). `test/clients` checks these types
 * against the SDK's.
 */
const count = z.int().min(0);
/** Absent without citations, as at Anthropic: `@ai-sdk/anthropic` 2 and 3 reject null. */
const cited = z
  .array(
    z.strictObject({
      type: z.literal("char_location"),
      cited_text: z.string(),
      document_index: count,
      document_title: z.string().nullable(),
      file_id: z.string().nullable(),
      start_char_index: count,
      end_char_index: count,
    }),
  )
  .optional();
const caller = z.strictObject({ type: z.literal("direct") });
const text = z.strictObject({ type: z.literal("text"), text: z.string(), citations: cited });
const redacted = z.strictObject({
  type: z.literal("redacted_thinking"),
  data: z.string().min(1),
});
const use = {
  type: z.literal("tool_use"),
  id: z.string().min(1),
  name: z.string().min(1),
  caller,
};
const block = z.discriminatedUnion("type", [
  text,
  redacted,
  z.strictObject({
    type: z.literal("thinking"),
    thinking: z.string(),
    signature: z.string().min(1),
  }),
  z.strictObject({ ...use, input: z.looseObject({}) }),
]);
/** A block at its start. Its content follows in deltas. */
const startedBlock = z.discriminatedUnion("type", [
  z.strictObject({ ...text.shape, text: z.literal("") }),
  redacted,
  z.strictObject({
    type: z.literal("thinking"),
    thinking: z.literal(""),
    signature: z.literal(""),
  }),
  z.strictObject({ ...use, input: z.strictObject({}) }),
]);

const ending = {
  stop_reason: z.enum(["end_turn", "max_tokens", "tool_use", "refusal", "stop_sequence"]),
  stop_sequence: z.string().nullable(),
  stop_details: z
    .strictObject({
      type: z.literal("refusal"),
      category: z.enum(["cyber", "bio"]).nullable(),
      explanation: z.string().nullable(),
      recommended_model: z.string().nullable().optional(),
    })
    .nullable(),
};
const counted = {
  input_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
  cache_creation: z.strictObject({
    ephemeral_5m_input_tokens: count,
    ephemeral_1h_input_tokens: count,
  }),
  output_tokens: count,
  server_tool_use: z.null(),
  service_tier: z.literal("standard"),
  inference_geo: z.null(),
  speed: z.null(),
};
const usage = z.strictObject({
  ...counted,
  output_tokens_details: z.strictObject({ thinking_tokens: count }),
  cost: z.number().min(0),
  cost_micro: count,
});
const envelope = {
  id: z.string().regex(/^msg_[0-9A-Za-z]{24}$/),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string().min(1),
  container: z.null(),
  diagnostics: z.null(),
};
export const message = z.strictObject({
  ...envelope,
  content: z.array(block),
  ...ending,
  usage,
});
export type AnyMessage = z.infer<typeof message>;

const delta = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text_delta"), text: z.string() }),
  z.strictObject({ type: z.literal("thinking_delta"), thinking: z.string() }),
  z.strictObject({ type: z.literal("signature_delta"), signature: z.string().min(1) }),
  z.strictObject({ type: z.literal("input_json_delta"), partial_json: z.string() }),
]);
const contentDelta = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("message_start"),
    message: z.strictObject({
      ...envelope,
      content: z.tuple([]),
      stop_reason: z.null(),
      stop_sequence: z.null(),
      stop_details: z.null(),
      // Clients treat 0 as unknown, and add this output to the final count.
      usage: z.strictObject({
        ...counted,
        input_tokens: count.min(1),
        output_tokens: z.literal(1),
        output_tokens_details: z.null(),
      }),
    }),
  }),
  z.strictObject({
    type: z.literal("content_block_start"),
    index: count,
    content_block: startedBlock,
  }),
  z.strictObject({ type: z.literal("content_block_delta"), index: count, delta }),
  z.strictObject({ type: z.literal("content_block_stop"), index: count }),
  z.strictObject({
    type: z.literal("message_delta"),
    delta: z.strictObject({ ...ending, container: z.null() }),
    usage,
  }),
  z.strictObject({ type: z.literal("message_stop") }),
]);

/**
 * The body of an error, and the event of a stream that fails. `details` has our code and its
 * numbers.
 */
export const refusal = z.strictObject({
  type: z.literal("error"),
  error: z.strictObject({
    type: z.enum([
      "invalid_request_error",
      "authentication_error",
      "billing_error",
      "permission_error",
      "not_found_error",
      "conflict_error",
      "request_too_large",
      "rate_limit_error",
      "timeout_error",
      "api_error",
      "overloaded_error",
    ]),
    message: z.string().min(1),
    details: z.looseObject({ error_code: z.string().min(1) }),
  }),
  request_id: z.string().regex(/^req_[0-9A-Za-z]{24}$/),
});
export type AnyRefusal = z.infer<typeof refusal>;

/** Every event of a stream. The SDK has no type for `ping`, which it ignores. */
export const event = z.discriminatedUnion("type", [
  ...contentDelta.options,
  refusal,
  z.strictObject({ type: z.literal("ping") }),
]);
