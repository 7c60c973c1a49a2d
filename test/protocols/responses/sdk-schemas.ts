import type OpenAI from "openai";
import * as z from "zod";

/**
 * Schemas of this endpoint's responses and events. Each has the type of the official SDK, so the
 * compiler ensures that parsed values have the SDK's types. They are strict, so unknown fields
 * fail. `error.code` has additional values that agents act on. `user` is null if it was not sent,
 * although the SDK's type is text.
 */
type R = OpenAI.Responses.Response;

const logprob = z.strictObject({
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.number()),
  top_logprobs: z.array(
    z.strictObject({ token: z.string(), logprob: z.number(), bytes: z.array(z.number()) }),
  ),
});
const annotation: z.ZodType<OpenAI.Responses.ResponseOutputText.URLCitation> = z.strictObject({
  type: z.literal("url_citation"),
  url: z.string(),
  title: z.string(),
  start_index: z.int(),
  end_index: z.int(),
});
const textPart = z.strictObject({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(annotation),
  logprobs: z.array(logprob),
}) satisfies z.ZodType<OpenAI.Responses.ResponseOutputText>;
const refusalPart = z.strictObject({
  type: z.literal("refusal"),
  refusal: z.string(),
}) satisfies z.ZodType<OpenAI.Responses.ResponseOutputRefusal>;
const contentPart = z.discriminatedUnion("type", [textPart, refusalPart]);

const status = z.enum(["in_progress", "completed", "incomplete"]);
const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[0-9A-Za-z]{24}\\d+$`));
const named = {
  call_id: z.string().min(1),
  name: z.string().min(1),
  namespace: z.exactOptional(z.string().min(1)),
};
const summaryPart = z.strictObject({ type: z.literal("summary_text"), text: z.string() });
export const outputItem = z.discriminatedUnion("type", [
  z.strictObject({
    id: id("msg"),
    type: z.literal("message"),
    status,
    role: z.literal("assistant"),
    content: z.array(contentPart),
    phase: z.exactOptional(z.enum(["commentary", "final_answer"])),
  }),
  z.strictObject({
    id: id("fc"),
    type: z.literal("function_call"),
    status,
    ...named,
    arguments: z.string(),
  }),
  z.strictObject({
    id: id("ctc"),
    type: z.literal("custom_tool_call"),
    status,
    ...named,
    input: z.string(),
  }),
  z.strictObject({
    id: id("rs"),
    type: z.literal("reasoning"),
    status,
    summary: z.array(summaryPart),
    encrypted_content: z.string().min(1).nullable(),
  }),
]) satisfies z.ZodType<OpenAI.Responses.ResponseOutputItem>;
export type Item = z.infer<typeof outputItem>;

const errorOfResponse = z.strictObject({
  code: z.string().min(1),
  message: z.string().min(1),
  type: z.string().min(1),
  param: z.string().nullable(),
}) satisfies z.ZodType<Omit<OpenAI.Responses.ResponseError, "code">>;

const count = z.int().min(0);
const usage = z.strictObject({
  input_tokens: count,
  input_tokens_details: z.strictObject({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: z.strictObject({ reasoning_tokens: count }),
  total_tokens: count,
  cost: z.number().min(0),
  cost_micro: count,
}) satisfies z.ZodType<OpenAI.Responses.ResponseUsage>;

const tool = z.custom<OpenAI.Responses.Tool>((value) => {
  const { type } = value as { type?: unknown };
  return typeof type === "string";
});
const toolChoice = z.custom<R["tool_choice"]>((value) => value !== null && value !== undefined);

export const response = z.strictObject({
  id: z.string().regex(/^resp_[0-9A-Za-z]{24}$/),
  object: z.literal("response"),
  created_at: count,
  completed_at: count.nullable(),
  status: z.enum(["in_progress", "completed", "incomplete", "failed"]),
  error: errorOfResponse.nullable(),
  incomplete_details: z
    .strictObject({ reason: z.enum(["max_output_tokens", "content_filter"]) })
    .nullable(),
  model: z.string().min(1),
  instructions: z.string().nullable(),
  output: z.array(outputItem),
  tools: z.array(tool),
  tool_choice: toolChoice,
  parallel_tool_calls: z.boolean(),
  text: z.custom<OpenAI.Responses.ResponseTextConfig>(
    (value) => typeof (value as { format?: { type?: unknown } }).format?.type === "string",
  ),
  reasoning: z.strictObject({
    effort: z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]).nullable(),
    summary: z.enum(["auto", "concise", "detailed"]).nullable(),
  }),
  temperature: z.number(),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: count,
  truncation: z.enum(["auto", "disabled"]),
  max_output_tokens: count.nullable(),
  max_tool_calls: count.nullable(),
  store: z.boolean(),
  background: z.literal(false),
  service_tier: z.literal("default"),
  previous_response_id: z.string().nullable(),
  metadata: z.record(z.string(), z.string()),
  user: z.string().nullable(),
  safety_identifier: z.string().nullable(),
  prompt_cache_key: z.string().nullable(),
  access_programs: z.null(),
  usage: usage.nullable(),
});
export type AnyResponse = z.infer<typeof response>;
/** Fields that the SDK adds itself, or whose values are wider here. */
type Wider = "output_text" | "error" | "user" | "usage";
const asSdk: z.ZodType<Omit<R, Wider>> = response;
void asSdk;

const sequence_number = z.int().min(0);
const onItem = { sequence_number, output_index: count, item_id: z.string().min(1) };
const onPart = { ...onItem, content_index: count };
const onSummary = { ...onItem, summary_index: z.literal(0) };

const lifecycle = (type: "created" | "in_progress" | "completed" | "incomplete" | "failed") =>
  z.strictObject({ type: z.literal(`response.${type}`), sequence_number, response });

/** Events without a response, which exactly match the SDK's types. */
const inside = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("response.output_item.added"),
    sequence_number,
    output_index: count,
    item: outputItem,
  }),
  z.strictObject({
    type: z.literal("response.output_item.done"),
    sequence_number,
    output_index: count,
    item: outputItem,
  }),
  z.strictObject({
    type: z.literal("response.content_part.added"),
    ...onPart,
    part: contentPart,
  }),
  z.strictObject({ type: z.literal("response.content_part.done"), ...onPart, part: contentPart }),
  z.strictObject({
    type: z.literal("response.output_text.delta"),
    ...onPart,
    delta: z.string(),
    logprobs: z.array(logprob),
  }),
  z.strictObject({
    type: z.literal("response.output_text.done"),
    ...onPart,
    text: z.string(),
    logprobs: z.array(logprob),
  }),
  z.strictObject({
    type: z.literal("response.output_text.annotation.added"),
    ...onPart,
    annotation,
    annotation_index: count,
  }),
  z.strictObject({
    type: z.literal("response.refusal.delta"),
    ...onPart,
    delta: z.string().min(1),
  }),
  z.strictObject({ type: z.literal("response.refusal.done"), ...onPart, refusal: z.string() }),
  z.strictObject({
    type: z.literal("response.function_call_arguments.delta"),
    ...onItem,
    delta: z.string().min(1),
  }),
  z.strictObject({
    type: z.literal("response.function_call_arguments.done"),
    ...onItem,
    name: z.string(),
    arguments: z.string(),
  }),
  z.strictObject({
    type: z.literal("response.custom_tool_call_input.delta"),
    ...onItem,
    delta: z.string().min(1),
  }),
  z.strictObject({
    type: z.literal("response.custom_tool_call_input.done"),
    ...onItem,
    input: z.string(),
  }),
  z.strictObject({
    type: z.literal("response.reasoning_summary_part.added"),
    ...onSummary,
    part: summaryPart,
  }),
  z.strictObject({
    type: z.literal("response.reasoning_summary_part.done"),
    ...onSummary,
    part: summaryPart,
  }),
  z.strictObject({
    type: z.literal("response.reasoning_summary_text.delta"),
    ...onSummary,
    delta: z.string().min(1),
  }),
  z.strictObject({
    type: z.literal("response.reasoning_summary_text.done"),
    ...onSummary,
    text: z.string(),
  }),
  z.strictObject({
    type: z.literal("error"),
    sequence_number,
    code: z.string().min(1),
    message: z.string().min(1),
    param: z.string().nullable(),
    error: errorOfResponse,
  }),
]);
const asEvent: z.ZodType<OpenAI.Responses.ResponseStreamEvent> = inside;
void asEvent;

/** Every event of a stream. The SDK has no type for `keepalive`, which it ignores. */
export const event = z.union([
  inside,
  lifecycle("created"),
  lifecycle("in_progress"),
  lifecycle("completed"),
  lifecycle("incomplete"),
  lifecycle("failed"),
  z.strictObject({ type: z.literal("keepalive"), sequence_number }),
]);
export type AnyEvent = z.infer<typeof event>;
