import * as z from "zod";
import { count, record, loose } from "./fields.ts";
import { errorObject, messagesError } from "./error-records.ts";
import { completionUsage, response } from "./records.ts";

/** Schemas of stream events by endpoint. */

/** An error after the status was sent. */
const broken = z.strictObject({ error: errorObject });

/** The usage, only in the last chunk and if the stream requested it. */
const usage = completionUsage.nullable().optional();
/** The provider, only in a chunk with usage. */
const provider = z.string().optional();
const finish = z
  .enum(["stop", "length", "tool_calls", "content_filter", "function_call"])
  .nullable();
const delta = z.looseObject({
  role: z.literal("assistant").optional(),
  content: z.string().nullable().optional(),
  refusal: z.string().nullable().optional(),
  reasoning_content: z.string().nullable().optional(),
  reasoning: z
    .string()
    .optional()
    .describe("The same text, under the name that OpenRouter's clients read."),
  tool_calls: z.array(z.looseObject({ index: count })).optional(),
});
const chunk = loose("ChatCompletionChunk", {
  id: z.string(),
  object: z.literal("chat.completion.chunk"),
  created: count,
  model: z.string(),
  choices: z.array(z.looseObject({ index: count, delta, finish_reason: finish.optional() })),
  provider,
  usage,
});
const numbered = z.looseObject({
  code: count.describe("The status that the error has without a stream."),
  message: z.string(),
  metadata: z.strictObject({ error_type: z.string() }),
});
/** An error for OpenRouter's SDKs. */
const brokenChunk = record("ChatCompletionErrorChunk", {
  id: z.string(),
  object: z.literal("chat.completion.chunk"),
  created: count,
  model: z.string(),
  choices: z.array(
    z.strictObject({
      index: count,
      delta: z.strictObject({ content: z.literal("") }),
      finish_reason: z.literal("error"),
    }),
  ),
  error: numbered,
});
export const chatChunk = z.union([chunk, broken, brokenChunk]);

const text = record("TextCompletionChunk", {
  id: z.string(),
  object: z.literal("text_completion"),
  created: count,
  model: z.string(),
  choices: z.array(
    z.strictObject({ text: z.string(), index: count, logprobs: z.null(), finish_reason: finish }),
  ),
  provider,
  usage,
});
const brokenText = record("TextCompletionErrorChunk", {
  id: z.string(),
  object: z.literal("text_completion"),
  created: count,
  model: z.string(),
  choices: z.array(
    z.strictObject({
      text: z.literal(""),
      index: count,
      logprobs: z.null(),
      finish_reason: z.literal("error"),
    }),
  ),
  error: numbered,
});
export const textChunk = z.union([text, broken, brokenText]);

const index = count;
const block = loose("MessageBlock", { type: z.string() });
const messageUsage = z.looseObject({ output_tokens: count });
/**
 * Anthropic's events (platform.claude.com, streaming messages). Each has a name, because code
 * generators need names in a union.
 */
export const messageEvent = z
  .union([
    loose("MessageStartEvent", {
      type: z.literal("message_start"),
      message: z.looseObject({ id: z.string(), type: z.literal("message"), model: z.string() }),
    }),
    loose("ContentBlockStartEvent", {
      type: z.literal("content_block_start"),
      index,
      content_block: block,
    }),
    loose("ContentBlockDeltaEvent", {
      type: z.literal("content_block_delta"),
      index,
      delta: block,
    }),
    loose("ContentBlockStopEvent", { type: z.literal("content_block_stop"), index }),
    loose("MessageDeltaEvent", {
      type: z.literal("message_delta"),
      delta: z.looseObject({ stop_reason: z.string().nullable() }),
      usage: messageUsage,
    }),
    loose("MessageStopEvent", { type: z.literal("message_stop") }),
    loose("PingEvent", { type: z.literal("ping") }),
    messagesError,
  ])
  .meta({ id: "MessageEvent" });

const sequence_number = count;
const inPart = { sequence_number, item_id: z.string(), output_index: count };
const ofResponse = loose("ResponseSoFar", {
  ...response.shape,
  status: z.enum(["in_progress", "completed", "incomplete", "failed"]),
  usage: response.shape.usage.nullable(),
});
/** OpenAI's events (openai npm, ResponseStreamEvent). */
export const responseEvent = z
  .union([
    record("ResponseStandsEvent", {
      type: z.enum([
        "response.created",
        "response.in_progress",
        "response.completed",
        "response.incomplete",
        "response.failed",
      ]),
      sequence_number,
      response: ofResponse,
    }),
    record("OutputItemEvent", {
      type: z.enum(["response.output_item.added", "response.output_item.done"]),
      sequence_number,
      output_index: count,
      item: z.looseObject({ id: z.string(), type: z.string(), status: z.string() }),
    }),
    loose("OutputPartEvent", {
      type: z.enum([
        "response.content_part.added",
        "response.content_part.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.output_text.annotation.added",
        "response.refusal.delta",
        "response.refusal.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
      ]),
      ...inPart,
    }),
    record("KeepaliveEvent", { type: z.literal("keepalive"), sequence_number }),
    record("ResponseErrorEvent", {
      type: z.literal("error"),
      sequence_number,
      code: z.string(),
      message: z.string(),
      param: z.string().nullable(),
      error: z.looseObject({ code: z.string(), message: z.string() }),
    }),
  ])
  .meta({ id: "ResponseEvent" });
