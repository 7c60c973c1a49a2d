import * as z from "zod/mini";
import { parseBody } from "../../shared/http/parse-body.ts";
import { findExternalIdProblem } from "../../shared/external-id.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { imageUrlSchema } from "./data-url.ts";
import { isObject, hasTypeField, removeNulls } from "./json-value.ts";
import type { JsonObject, KnownFields } from "./json-value.ts";

export const PDF_MEDIA_TYPE = "application/pdf";
export const PDF_DATA_URL_PREFIX = `data:${PDF_MEDIA_TYPE};base64,`;
export const DEFAULT_PDF_FILENAME = "document.pdf";

const MESSAGES_MAX = 10_000;
export const CHOICES_MAX = 128;
export const MODEL_NAME_CHARACTERS_MAX = 256;
const nonempty = z.string().check(z.minLength(1));
/** An object to forward unchanged. Zod's copy would lose a property named `__proto__`. */
export const opaqueObjectSchema = z.custom<JsonObject>(isObject, "must be an object");

const reasoningDetail = z.custom<JsonObject & { readonly type: string }>(
  (value) => isObject(value) && hasTypeField(value),
  "must be an object with a 'type'",
);

/** Anthropic's `cache_control`. An invalid value is ignored. */
const cache_control = z.optional(z.unknown());
const textPart = z.object({ type: z.literal("text"), text: z.string(), cache_control });
const imagePart = z.object({
  type: z.literal("image_url"),
  image_url: z.object({
    url: imageUrlSchema.check(z.minLength(1)),
    detail: z.nullish(z.enum(["auto", "low", "high"])),
  }),
  cache_control,
});
const FILE_ID_PROBLEM =
  "is not supported, because this gateway doesn't store files. Send the file itself";
const filePart = z.object({
  type: z.literal("file"),
  file: z.object({
    file_data: z.string().check(
      z.startsWith(PDF_DATA_URL_PREFIX, {
        error: `must be a PDF as a data URL: ${PDF_DATA_URL_PREFIX}...`,
      }),
    ),
    filename: z.nullish(z.string().check(z.maxLength(256))),
    file_id: z.nullish(z.never({ error: FILE_ID_PROBLEM })),
  }),
  cache_control,
});
const refusalPart = z.object({ type: z.literal("refusal"), refusal: z.string() });

const text = z.union([z.string(), z.array(textPart).check(z.minLength(1))]);
const userParts = z
  .array(z.discriminatedUnion("type", [textPart, imagePart, filePart]))
  .check(z.minLength(1));
const assistantParts = z
  .array(z.discriminatedUnion("type", [textPart, refusalPart]))
  .check(z.minLength(1));
const name = z.nullish(z.string().check(z.maxLength(256)));

export const toolNameSchema = nonempty.check(z.maxLength(256));

const toolCall = z.discriminatedUnion("type", [
  z.object({
    id: nonempty,
    type: z.literal("function"),
    function: z.object({ name: toolNameSchema, arguments: z.string() }),
    // Google's thought signature (ai.google.dev, OpenAI compatibility). If a client doesn't send
    // the signature back, the next turn fails.
    extra_content: z.nullish(opaqueObjectSchema),
  }),
  z.object({
    id: nonempty,
    type: z.literal("custom"),
    custom: z.object({ name: toolNameSchema, input: z.string() }),
  }),
]);

/**
 * A message of a chat request (openapi.yaml, ChatCompletionRequestMessage). Drops unknown fields,
 * because hosts other than OpenAI reject them. Accepts null fields, because SDKs send responses
 * back as messages.
 */
const chatMessage = z.discriminatedUnion("role", [
  z.object({ role: z.literal("developer"), content: text, name }),
  z.object({ role: z.literal("system"), content: text, name }),
  z.object({ role: z.literal("user"), content: z.union([z.string(), userParts]), name }),
  z.object({
    role: z.literal("assistant"),
    content: z.nullish(z.union([z.string(), assistantParts])),
    name,
    refusal: z.nullish(z.string()),
    reasoning_content: z.nullish(z.string()),
    reasoning: z.nullish(z.string()),
    reasoning_details: z.nullish(z.array(reasoningDetail)),
    tool_calls: z.nullish(z.array(toolCall).check(z.minLength(1))),
    function_call: z.nullish(z.object({ name: z.string(), arguments: z.string() })),
  }),
  z.object({ role: z.literal("tool"), content: text, tool_call_id: nonempty, name }),
  z.object({ role: z.literal("function"), content: z.nullable(z.string()), name: toolNameSchema }),
]);

export type ChatMessage = z.infer<typeof chatMessage>;

const TOOLS_MAX = 1024;

export const externalIdSchema = z.string().check(
  z.superRefine((value, context) => {
    const problem = findExternalIdProblem(value);
    if (problem !== null) context.addIssue({ code: "custom", message: problem });
  }),
);

export const functionNameSchema = z
  .string()
  .check(z.regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 of a-z, A-Z, 0-9, _ and -"));
const tool = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("function"),
    function: z.looseObject({
      name: functionNameSchema,
      description: z.nullish(z.string()),
      parameters: z.nullish(opaqueObjectSchema),
      strict: z.nullish(z.boolean()),
    }),
  }),
  z.looseObject({ type: z.literal("custom"), custom: z.looseObject({ name: functionNameSchema }) }),
]);
const namedObject = z.looseObject({ name: z.string().check(z.minLength(1)) });
const toolName = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("function"), function: namedObject }),
  z.looseObject({ type: z.literal("custom"), custom: namedObject }),
]);
const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("function"), function: namedObject }),
    z.looseObject({ type: z.literal("custom"), custom: namedObject }),
    z.looseObject({
      type: z.literal("allowed_tools"),
      allowed_tools: z.looseObject({
        mode: z.enum(["auto", "required"]),
        tools: z.array(toolName).check(z.minLength(1), z.maxLength(TOOLS_MAX)),
      }),
    }),
  ]),
]);
const responseFormat = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text") }),
  z.looseObject({ type: z.literal("json_object") }),
  z.looseObject({
    type: z.literal("json_schema"),
    json_schema: z.looseObject({
      name: functionNameSchema,
      schema: z.optional(opaqueObjectSchema),
    }),
  }),
]);
const flag = z.optional(z.boolean());
const count = z.optional(z.int().check(z.minimum(1)));
const penalty = numberBetween(-2, 2);

/**
 * Options of the prompt cache. Rejects cache warming. Drops other options, because longer caching
 * has a different price.
 */
export const promptCacheOptionsSchema = z.looseObject({
  prewarm: z.nullish(z.literal(false, { error: "must be false" })),
});
const tuningNumber = z.optional(z.number());

export const REASONING_EFFORTS = [
  "none",
  "minimal",
  "low",
  "medium",
  "high",
  "xhigh",
  "max",
] as const;
/** A field that costs extra but has no price in the catalog. Any value is an error. */
const unsupportedField = z.optional(z.never({ error: "is not supported" }));
export const chatBodySchema = z.looseObject({
  model: z.string().check(z.minLength(1), z.maxLength(MODEL_NAME_CHARACTERS_MAX)),
  messages: z.array(chatMessage).check(z.minLength(1), z.maxLength(MESSAGES_MAX)),
  temperature: numberBetween(0, 2),
  top_p: numberBetween(0, 1),
  n: z.optional(z.int().check(z.minimum(1), z.maximum(CHOICES_MAX))),
  max_tokens: count,
  max_completion_tokens: count,
  stop: z.optional(
    z.union([z.string(), z.array(z.string()).check(z.minLength(1), z.maxLength(4))]),
  ),
  seed: z.optional(z.int()),
  frequency_penalty: penalty,
  presence_penalty: penalty,
  logit_bias: z.optional(z.record(z.string(), z.number().check(z.minimum(-100), z.maximum(100)))),
  logprobs: flag,
  top_logprobs: z.optional(z.int().check(z.minimum(0), z.maximum(20))),
  response_format: z.optional(responseFormat),
  tools: z.optional(z.array(tool).check(z.maxLength(TOOLS_MAX))),
  tool_choice: z.optional(toolChoice),
  parallel_tool_calls: flag,
  stream: flag,
  stream_options: z.optional(z.looseObject({ include_usage: z.nullish(z.boolean()) })),
  reasoning_effort: z.optional(z.enum(REASONING_EFFORTS)),
  verbosity: z.optional(z.enum(["low", "medium", "high"])),
  min_p: tuningNumber,
  repetition_penalty: tuningNumber,
  top_k: tuningNumber,
  prompt_cache_key: z.optional(z.string().check(z.maxLength(1024))),
  prompt_cache_options: z.optional(promptCacheOptionsSchema),
  prompt_cache_retention: z.optional(z.string().check(z.maxLength(64))),
  safety_identifier: z.optional(z.string().check(z.maxLength(128))),
  user: z.optional(externalIdSchema),
  service_tier: z.optional(z.enum(["auto", "default"], { error: "must be auto or default" })),
  modalities: z.optional(z.array(z.literal("text", { error: "must be text" }))),
  store: z.optional(z.literal(false, { error: "must be false: completions are not stored" })),
  web_search_options: unsupportedField,
  audio: unsupportedField,
  prediction: unsupportedField,
});

export type ChatBody = z.infer<typeof chatBodySchema>;

export function parseChatRequest(value: object): Result<ChatBody> {
  if (!("messages" in value) && "input" in value) {
    return invalid(
      "This endpoint requires 'messages' instead of 'input'. Send Responses requests to POST /v1/responses.",
      "messages",
    );
  }
  if (isPlainChat(value)) return success(value as ChatBody);
  const parsed = parseBody(chatBodySchema, removeNulls(value));
  if (!parsed.ok) return explainUnsupportedPart(value, parsed);
  return refuseUndeclaredTool(parsed.value) ?? parsed;
}

function refuseUndeclaredTool({ tools, tool_choice: choice }: ChatBody): Refusal | null {
  if (typeof choice !== "object") return null;
  const declared = new Set((tools ?? []).map(toolNameOf));
  const chosenTools = choice.type === "allowed_tools" ? choice.allowed_tools.tools : [choice];
  if (chosenTools.every((one) => declared.has(toolNameOf(one)))) return null;
  return invalid("'tool_choice' names a tool that isn't in 'tools'.", "tool_choice");
}

function toolNameOf(one: z.infer<typeof toolName>): string {
  return one.type === "function" ? `function ${one.function.name}` : `custom ${one.custom.name}`;
}

export function readRequestedCap({ max_tokens, max_completion_tokens }: ChatBody): number | null {
  const cap = Math.min(max_tokens ?? Infinity, max_completion_tokens ?? Infinity);
  return cap === Infinity ? null : cap;
}

const UNPRICED_PARTS: ReadonlySet<unknown> = new Set(["input_audio"]);

function explainUnsupportedPart(value: object, refusal: Refusal): Refusal {
  const param = refusal.failure.kind === "invalid_request" ? (refusal.failure.param ?? "") : "";
  const [, message_, part] = /^messages\[(\d+)\]\.content\[(\d+)\]/.exec(param) ?? [];
  if (message_ === undefined || part === undefined) return refusal;
  const messages = (value as { messages: { content: { type?: unknown }[] }[] }).messages;
  const type = messages[Number(message_)]?.content[Number(part)]?.type;
  if (typeof type !== "string" || !UNPRICED_PARTS.has(type)) return refusal;
  return invalid(
    `Content parts of type '${type}' are not supported. Send text, image_url or file.`,
    param,
  );
}

export function numberBetween(minimum: number, maximum: number) {
  return z.optional(z.number().check(z.minimum(minimum), z.maximum(maximum)));
}

const PLAIN_ROLES: ReadonlySet<unknown> = new Set(["system", "developer", "user", "assistant"]);

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 1;
const isWithin = (value: unknown, maximum: number): boolean =>
  typeof value === "number" && value >= 0 && value <= maximum;
const isBoolean = (value: unknown): boolean => typeof value === "boolean";

const PLAIN_FIELDS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ["model", (value) => typeof value === "string" && isModelName(value)],
  ["messages", arePlainMessages],
  ["temperature", (value) => isWithin(value, 2)],
  ["top_p", (value) => isWithin(value, 1)],
  ["max_tokens", isCount],
  ["max_completion_tokens", isCount],
  ["n", (value) => isCount(value) && Number(value) <= CHOICES_MAX],
  ["stream", isBoolean],
  ["stream_options", isUsageOption],
  ["user", (value) => typeof value === "string" && findExternalIdProblem(value) === null],
]);

/**
 * Reports whether a body is a plain text chat, which needs no schema validation. Nine of ten
 * requests are such chats.
 */
export function isPlainChat(body: object): boolean {
  for (const [field, value] of Object.entries(body)) {
    if (PLAIN_FIELDS.get(field)?.(value) !== true) return false;
  }
  return Object.hasOwn(body, "model") && Object.hasOwn(body, "messages");
}

function isModelName({ length }: string): boolean {
  return length >= 1 && length <= MODEL_NAME_CHARACTERS_MAX;
}

function arePlainMessages(messages: unknown): boolean {
  if (!Array.isArray(messages) || messages.length < 1) return false;
  return messages.length <= MESSAGES_MAX && messages.every(isPlainMessage);
}

function isPlainMessage(message: unknown): boolean {
  if (typeof message !== "object" || message === null) return false;
  const { role, content }: KnownFields<"role" | "content"> = message;
  if (typeof content !== "string" || !PLAIN_ROLES.has(role)) return false;
  return Object.keys(message).length === 2;
}

function isUsageOption(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { include_usage: request }: KnownFields<"include_usage"> = value;
  return isBoolean(request) && Object.keys(value).length === 1;
}

const EFFORT_BY_SHARE_MAX = [
  [0.05, "minimal"],
  [0.2, "low"],
  [0.45, "medium"],
  [0.75, "high"],
] as const;

/** Returns the effort for a reasoning budget given as a share (0 to 1) of the output. */
export function chooseEffortForShare(share: number): string {
  return EFFORT_BY_SHARE_MAX.find(([most]) => share <= most)?.[1] ?? "xhigh";
}
