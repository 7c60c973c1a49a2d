import * as z from "zod/mini";
import { parseBody } from "../../../shared/http/parse-body.ts";
import { invalid } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { isObject, removeNulls } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import {
  functionNameSchema,
  numberBetween,
  REASONING_EFFORTS,
  toolNameSchema,
  MODEL_NAME_CHARACTERS_MAX,
  opaqueObjectSchema,
  promptCacheOptionsSchema,
  externalIdSchema,
} from "../../core/core-request.ts";
import type { ChatBody } from "../../core/core-request.ts";
import { imageUrlSchema } from "../../core/data-url.ts";
import { responsesToolsSchema, responsesToolChoiceSchema } from "./client-tools.ts";

const nonempty = z.string().check(z.minLength(1));
const text = z.nullish(z.string());

const textPart = z.object({
  type: z.enum(["input_text", "output_text", "text"]),
  text: z.string(),
});
const refusalPart = z.object({ type: z.literal("refusal"), refusal: z.string() });
const imagePart = z.object({
  type: z.literal("input_image"),
  image_url: z.nullish(imageUrlSchema),
  file_id: text,
  detail: z.nullish(z.enum(["auto", "low", "high", "original"])),
});
const filePart = z.object({
  type: z.literal("input_file"),
  file_data: text,
  file_id: text,
  file_url: text,
  filename: text,
  detail: z.nullish(z.enum(["auto", "low", "high"])),
});
const part = z.discriminatedUnion("type", [textPart, refusalPart, imagePart, filePart]);
export type InputPart = z.infer<typeof part>;

export function isInputPart(value: unknown): value is InputPart {
  return z.safeParse(part, value).success;
}

const message = z.object({
  type: z.literal("message"),
  role: z.enum(["user", "system", "developer", "assistant"]),
  content: z.union([z.string(), z.array(part)]),
  phase: text,
});
const output = z.union([z.string(), z.array(part)]);
const callFields = { call_id: nonempty, name: toolNameSchema, namespace: text };
const outputFields = { call_id: nonempty, output };

/** An input item (openai npm's ResponseInputItem, or Codex's own). Drops unknown fields. */
const item = z.discriminatedUnion("type", [
  message,
  z.object({ type: z.literal("function_call"), ...callFields, arguments: z.string() }),
  z.object({ type: z.literal("function_call_output"), ...outputFields }),
  z.object({ type: z.literal("custom_tool_call"), ...callFields, input: z.string() }),
  z.object({ type: z.literal("custom_tool_call_output"), ...outputFields }),
  z.object({
    type: z.literal("reasoning"),
    id: text,
    encrypted_content: text,
    summary: z.optional(z.unknown()),
  }),
  z.object({ type: z.literal("additional_tools"), tools: responsesToolsSchema }),
  z.looseObject({ type: z.literal("agent_message") }),
  z.object({
    type: z.enum([
      "web_search_call",
      "file_search_call",
      "image_generation_call",
      "code_interpreter_call",
      "mcp_list_tools",
      "mcp_call",
    ]),
  }),
]);
export type InputItem = z.infer<typeof item>;

export const INPUT_ITEMS_MAX = 10_000;

const input = z.union([
  z.string().check(z.minLength(1)),
  z.array(item).check(z.minLength(1), z.maxLength(INPUT_ITEMS_MAX)),
]);

function addItemType(raw: unknown): unknown {
  if (!isObject(raw) || (raw["type"] ?? null) !== null) return raw;
  return raw["role"] === undefined ? raw : { ...raw, type: "message" };
}

const HOSTED_TOOL_MESSAGE =
  "The output of a provider's own tool can't be sent to another provider. Send it as function_call and function_call_output.";

const REFUSED_ITEM_TYPES: ReadonlySet<unknown> = new Set([
  "computer_call",
  "computer_call_output",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
  "apply_patch_call",
  "apply_patch_call_output",
  "tool_search_call",
  "tool_search_output",
  "mcp_approval_request",
  "mcp_approval_response",
]);

function refuseItems(items: readonly unknown[]): Refusal | null {
  for (const [index, raw] of items.entries()) {
    if (!isObject(raw)) continue;
    const path = `input[${index}]`;
    if (REFUSED_ITEM_TYPES.has(raw["type"])) return invalid(HOSTED_TOOL_MESSAGE, `${path}.type`);
    if (isOutput(raw) && (raw["call_id"] ?? null) === null) {
      return invalid("The output of a tool call requires 'call_id'.", `${path}.call_id`);
    }
  }
  return null;
}

function isOutput({ type }: JsonObject): boolean {
  return type === "function_call_output" || type === "custom_tool_call_output";
}

const OUTPUT_TOKENS_MIN = 16;
const flag = z.optional(z.boolean());
export const LOGPROBS_INCLUDE_VALUE = "message.output_text.logprobs";
const INCLUDE_ENCRYPTED = "reasoning.encrypted_content";
const includable = z.enum([
  LOGPROBS_INCLUDE_VALUE,
  INCLUDE_ENCRYPTED,
  "message.input_image.image_url",
  "computer_call_output.output.image_url",
  "code_interpreter_call.outputs",
  "file_search_call.results",
  "web_search_call.results",
  "web_search_call.action.sources",
]);

const format = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text") }),
  z.looseObject({ type: z.literal("json_object") }),
  z.looseObject({
    type: z.literal("json_schema"),
    name: functionNameSchema,
    schema: opaqueObjectSchema,
    strict: z.nullish(z.boolean()),
    description: text,
  }),
]);
const summary = z.nullish(z.enum(["auto", "concise", "detailed"]));
const reasoning = z.looseObject({
  effort: z.nullish(z.enum(REASONING_EFFORTS)),
  summary,
  generate_summary: summary,
  mode: z.nullish(z.literal("standard", { error: "must be standard" })),
});

const unsupportedState = z.optional(
  z.never({ error: "is not supported. Send the whole input instead" }),
);
const unsupportedFeature = z.optional(z.never({ error: "is not supported" }));

const PAIRS_MAX = 16;
const metadata = z
  .record(z.string().check(z.maxLength(64)), z.string().check(z.maxLength(512)))
  .check(z.refine((pairs) => Object.keys(pairs).length <= PAIRS_MAX, "must have at most 16 pairs"));

/** The request body (openai npm, ResponseCreateParams). Drops unknown fields. */
export const responsesBodySchema = z.object({
  model: z.string().check(z.minLength(1), z.maxLength(MODEL_NAME_CHARACTERS_MAX)),
  input,
  instructions: z.optional(z.string()),
  stream: flag,
  max_output_tokens: z.optional(z.int().check(z.minimum(OUTPUT_TOKENS_MIN))),
  max_tool_calls: z.optional(z.int()),
  temperature: numberBetween(0, 2),
  top_p: numberBetween(0, 1),
  presence_penalty: numberBetween(-2, 2),
  frequency_penalty: numberBetween(-2, 2),
  top_logprobs: z.optional(z.int().check(z.minimum(0), z.maximum(20))),
  tools: z.optional(responsesToolsSchema),
  tool_choice: z.optional(responsesToolChoiceSchema),
  parallel_tool_calls: flag,
  text: z.optional(
    z.looseObject({
      format: z.nullish(format),
      verbosity: z.nullish(z.enum(["low", "medium", "high"])),
    }),
  ),
  reasoning: z.optional(reasoning),
  include: z.optional(z.array(includable).check(z.maxLength(64))),
  store: flag,
  metadata: z.optional(metadata),
  user: z.optional(externalIdSchema),
  safety_identifier: z.optional(z.string().check(z.maxLength(128))),
  prompt_cache_key: z.optional(z.string().check(z.maxLength(1024))),
  prompt_cache_options: z.optional(promptCacheOptionsSchema),
  service_tier: z.optional(z.enum(["auto", "default"], { error: "must be auto or default" })),
  truncation: z.optional(z.enum(["auto", "disabled"])),
  background: z.optional(
    z.literal(false, { error: "must be false, because background responses are not supported" }),
  ),
  previous_response_id: z.optional(z.string()),
  conversation: unsupportedState,
  prompt: unsupportedState,
  context_management: unsupportedFeature,
  moderation: unsupportedFeature,
  access_programs: unsupportedFeature,
});

export type ResponsesRequest = z.infer<typeof responsesBodySchema>;

/** Parses a request body and adds missing item types. */
export function parseResponsesRequest(value: object): Result<ResponsesRequest> {
  const source = removeNulls(value);
  const { input: items } = source;
  if (!Array.isArray(items)) return parseBody(responsesBodySchema, source);
  const typedItems = items.map(addItemType);
  return (
    refuseItems(typedItems) ?? parseBody(responsesBodySchema, { ...source, input: typedItems })
  );
}

export type RequestedOptionalOutput = {
  readonly summary: boolean;
  readonly encrypted: boolean;
  readonly logprobs: boolean;
};

export function getRequestedOptionalOutput({
  reasoning: requested,
  include = [],
}: ResponsesRequest): RequestedOptionalOutput {
  return {
    summary: (requested?.summary ?? requested?.generate_summary ?? null) !== null,
    encrypted: include.includes(INCLUDE_ENCRYPTED),
    logprobs: include.includes(LOGPROBS_INCLUDE_VALUE),
  };
}

export function toChatSettings(body: ResponsesRequest): Partial<ChatBody> {
  const { text: requested, reasoning: thinking, max_output_tokens: cap } = body;
  const { temperature, top_p, presence_penalty, frequency_penalty, top_logprobs } = body;
  const settings: { readonly [K in keyof ChatBody]?: ChatBody[K] | undefined } = {
    max_completion_tokens: cap,
    temperature,
    top_p,
    presence_penalty,
    frequency_penalty,
    response_format: formatOf(requested?.format ?? undefined),
    verbosity: requested?.verbosity ?? undefined,
    reasoning_effort: thinking?.effort ?? undefined,
    ...(getRequestedOptionalOutput(body).logprobs && { logprobs: true, top_logprobs }),
  };
  return removeNulls(settings);
}

function formatOf(requested: z.infer<typeof format> | undefined): ChatBody["response_format"] {
  if (requested?.type === "json_object") return { type: "json_object" };
  if (requested?.type !== "json_schema") return undefined;
  const { name: formatName, schema, strict, description } = requested;
  return {
    type: "json_schema",
    json_schema: {
      name: formatName,
      schema,
      ...(typeof strict === "boolean" && { strict }),
      ...(typeof description === "string" && { description }),
    },
  };
}

const UNSUPPORTED_FIELDS = ["prompt_cache_options", "max_tool_calls"];
const SILENTLY_IGNORED_FIELDS: ReadonlySet<string> = new Set(["client_metadata", "stream_options"]);

export function listIgnoredResponsesFields(value: JsonObject): readonly string[] {
  const unknown = Object.keys(value).filter(
    (field) =>
      !Object.hasOwn(responsesBodySchema.shape, field) && !SILENTLY_IGNORED_FIELDS.has(field),
  );
  return [...UNSUPPORTED_FIELDS, ...unknown].filter((field) => (value[field] ?? null) !== null);
}
