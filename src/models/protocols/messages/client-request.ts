import * as z from "zod/mini";
import { invalid, refuse } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { parseBody } from "../../../shared/http/parse-body.ts";
import { isObject } from "../../core/json-value.ts";
import { toolNameSchema, opaqueObjectSchema } from "../../core/core-request.ts";
import { imageUrlSchema } from "../../core/data-url.ts";

/** Supported `anthropic-version` values, default first. */
export const MESSAGES_VERSIONS = ["2023-06-01", "2026-10-21"] as const;
export type MessagesVersion = (typeof MESSAGES_VERSIONS)[number];

const MESSAGES_MAX = 10_000;
const NO_FILES = "is not supported. Send the bytes in base64";
const TOOLS_MAX = 1024;
const nonempty = z.string().check(z.minLength(1));
const flag = z.nullish(z.boolean());

const cacheControl = z.nullish(
  z.looseObject({ type: z.literal("ephemeral"), ttl: z.nullish(z.enum(["5m", "1h"])) }),
);

const textBlock = z.looseObject({
  type: z.literal("text"),
  text: z.string(),
  cache_control: cacheControl,
});

const imageBlock = z.looseObject({
  type: z.literal("image"),
  source: z.discriminatedUnion("type", [
    z.looseObject({
      type: z.literal("base64"),
      media_type: z.enum(["image/jpeg", "image/png", "image/gif", "image/webp"]),
      data: nonempty,
    }),
    z.looseObject({ type: z.literal("url"), url: imageUrlSchema.check(z.minLength(1)) }),
    // File IDs are rejected. All customers share our account, so a file ID could reveal another
    // customer's file.
    z.looseObject({ type: z.literal("file"), file_id: rejectFiles() }),
  ]),
  cache_control: cacheControl,
});

const documentBlock = z.looseObject({
  type: z.literal("document"),
  source: z.discriminatedUnion("type", [
    z.looseObject({
      type: z.literal("base64"),
      media_type: z.literal("application/pdf"),
      data: nonempty,
    }),
    z.looseObject({
      type: z.literal("text"),
      media_type: z.literal("text/plain"),
      data: z.string(),
    }),
    z.looseObject({
      type: z.literal("content"),
      content: z.union([
        z.string(),
        z.array(z.discriminatedUnion("type", [textBlock, imageBlock])),
      ]),
    }),
    // Documents by URL are rejected, because their page count and price are unknown in advance.
    z.looseObject({ type: z.literal("url"), url: rejectFiles() }),
    z.looseObject({ type: z.literal("file"), file_id: rejectFiles() }),
  ]),
  title: z.nullish(z.string()),
  context: z.nullish(z.string()),
  citations: z.nullish(z.looseObject({ enabled: flag })),
  cache_control: cacheControl,
});

const searchResultBlock = z.looseObject({
  type: z.literal("search_result"),
  source: z.string(),
  title: z.string(),
  content: z.array(textBlock),
  cache_control: cacheControl,
});

const visibleBlocks = [textBlock, imageBlock, documentBlock, searchResultBlock] as const;
const toolReferenceBlock = z.looseObject({
  type: z.literal("tool_reference"),
  tool_name: nonempty,
});

const toolResultBlock = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: nonempty,
  content: z.nullish(
    z.union([
      z.string(),
      z.array(z.discriminatedUnion("type", [...visibleBlocks, toolReferenceBlock])),
    ]),
  ),
  is_error: flag,
  cache_control: cacheControl,
});

const toolUseBlock = z.looseObject({
  type: z.literal("tool_use"),
  id: nonempty,
  name: toolNameSchema,
  input: opaqueObjectSchema,
  cache_control: cacheControl,
});
const thinkingBlock = z.looseObject({
  type: z.literal("thinking"),
  thinking: z.string(),
  signature: z.nullish(z.string()),
});
const redactedBlock = z.looseObject({ type: z.literal("redacted_thinking"), data: z.string() });

const SERVER_BLOCKS = [
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
] as const;
const serverBlock = z.looseObject({
  type: z.enum(SERVER_BLOCKS),
  content: z.optional(
    z.unknown().check(
      z.superRefine((value, context) => {
        for (const issue of findFileIssues(value, [])) {
          context.addIssue({ code: "custom", ...issue });
        }
      }),
    ),
  ),
});

type Issue = { readonly path: PropertyKey[]; readonly message: string };

function findFileIssues(value: unknown, path: PropertyKey[]): Issue[] {
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => findFileIssues(item, [...path, index]));
  }
  if (!isObject(value)) return [];
  if ((value["file_id"] ?? null) !== null) {
    return [{ path: [...path, "file_id"], message: NO_FILES }];
  }
  const blockSchema = BLOCKS_WITH_FILES.get(value["type"]);
  if (blockSchema === undefined) return findFileIssues(value["content"], [...path, "content"]);
  const parsed = z.safeParse(blockSchema, value);
  const issues = parsed.error?.issues ?? [];
  return issues.map((issue) => ({ path: [...path, ...issue.path], message: issue.message }));
}

const BLOCKS_WITH_FILES: ReadonlyMap<unknown, z.ZodMiniType> = new Map<unknown, z.ZodMiniType>([
  ["document", documentBlock],
  ["image", imageBlock],
]);

const block = z.discriminatedUnion("type", [
  ...visibleBlocks,
  toolResultBlock,
  toolUseBlock,
  thinkingBlock,
  redactedBlock,
  serverBlock,
]);

const content = z.union([z.string(), z.array(block)]);
const systemText = z.union([z.string(), z.array(textBlock)]);

const message = z.discriminatedUnion("role", [
  z.looseObject({ role: z.literal("user"), content }),
  z.looseObject({ role: z.literal("assistant"), content }),
  z.looseObject({ role: z.literal("system"), content: systemText }),
]);

const toolName = z
  .string()
  .check(z.regex(/^[a-zA-Z0-9_-]{1,128}$/, "must be 1 to 128 of a-z, A-Z, 0-9, _ and -"));

/** A client's own tool (`type` absent, null or `custom`), or a tool that Anthropic defines. */
const tool = z.looseObject({
  type: z.nullish(nonempty),
  name: z.nullish(toolName),
  description: z.nullish(z.string()),
  input_schema: z.nullish(opaqueObjectSchema),
  strict: flag,
  cache_control: cacheControl,
});

const toolChoice = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("auto"), disable_parallel_tool_use: flag }),
  z.looseObject({ type: z.literal("any"), disable_parallel_tool_use: flag }),
  z.looseObject({ type: z.literal("tool"), name: nonempty, disable_parallel_tool_use: flag }),
  z.looseObject({ type: z.literal("none") }),
]);

const display = z.nullish(z.string());
const thinking = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("enabled"),
    budget_tokens: z.int().check(z.minimum(1024)),
    display,
  }),
  z.looseObject({ type: z.literal("adaptive"), display }),
  z.looseObject({ type: z.literal("disabled") }),
  z.looseObject({ type: z.literal("between_tools"), display }),
]);

const outputFormat = z.looseObject({ type: z.literal("json_schema"), schema: opaqueObjectSchema });

const unsupported = z.nullish(z.never({ error: "is not supported" }));

const CONTEXT_EDITS = ["clear_tool_uses_20250919", "clear_thinking_20251015"] as const;

/**
 * The body of POST /v1/messages and /v1/messages/count_tokens (platform.claude.com, Messages API,
 * version 2023-06-01). Unknown fields are kept for native routes.
 */
const commonFields = {
  model: nonempty.check(z.maxLength(256)),
  messages: z.array(message).check(z.minLength(1), z.maxLength(MESSAGES_MAX)),
  system: z.nullish(systemText),
  tools: z.nullish(z.array(tool).check(z.maxLength(TOOLS_MAX))),
  tool_choice: z.nullish(toolChoice),
  thinking: z.nullish(thinking),
  output_config: z.nullish(
    z.looseObject({
      effort: z.nullish(z.enum(["low", "medium", "high", "xhigh", "max"])),
      format: z.nullish(outputFormat),
    }),
  ),
  output_format: z.nullish(outputFormat),
  cache_control: cacheControl,
  context_management: z.nullish(
    z.looseObject({
      edits: z.nullish(
        z.array(z.looseObject({ type: z.enum(CONTEXT_EDITS, "must be an edit without cost") })),
      ),
    }),
  ),
  container: unsupported,
  mcp_servers: z.nullish(z.array(z.unknown()).check(z.maxLength(0, "is not supported"))),
  compaction: unsupported,
  fallbacks: unsupported,
  fallback_credit_token: unsupported,
  billing_policy: unsupported,
};

export const countTokensBodySchema = z.looseObject(commonFields);

export const messagesBodySchema = z.looseObject({
  ...commonFields,
  max_tokens: z.int().check(z.minimum(0)),
  stream: flag,
  stop_sequences: z.nullish(z.array(z.string()).check(z.maxLength(8191))),
  temperature: z.nullish(z.number().check(z.minimum(0), z.maximum(1))),
  top_p: z.nullish(z.number().check(z.minimum(0), z.maximum(1))),
  top_k: z.nullish(z.int().check(z.minimum(0))),
  metadata: z.nullish(z.looseObject({ user_id: z.nullish(z.string()) })),
  service_tier: z.nullish(z.enum(["auto", "standard_only"])),
  inference_geo: z.nullish(z.string()),
  speed: z.nullish(z.literal("standard", { error: "must be standard" })),
});

export type MessagesBody = z.infer<typeof messagesBodySchema>;
export type CountTokensBody = z.infer<typeof countTokensBodySchema>;
export type MessagesMessage = z.infer<typeof message>;
export type MessagesInputBlock = z.infer<typeof block>;
export type VisibleContentBlock = z.infer<(typeof visibleBlocks)[number]>;
export type MessagesTool = z.infer<typeof tool>;
export type TextBlock = z.infer<typeof textBlock>;

export function parseMessagesRequest(
  value: object,
  version: MessagesVersion,
): Result<MessagesBody> {
  const parsed = checkThread(value) ?? parseBody(messagesBodySchema, value);
  if (!parsed.ok) return parsed;
  const problem = version === "2026-10-21" ? checkNewerRules(parsed.value) : null;
  return problem ?? parsed;
}

export function parseCountTokensRequest(value: object): Result<CountTokensBody> {
  return checkThread(value) ?? parseBody(countTokensBodySchema, value);
}

/** The error code for unsupported threads. After this error, SDKs send the whole conversation. */
export const THREADS_UNSUPPORTED_CODE = "thread_unsupported_request";

function checkThread(value: { readonly thread?: unknown }): Result<never> | null {
  if ((value.thread ?? null) === null) return null;
  return refuse({
    kind: "invalid_request",
    message: "'thread' is not supported. Send the whole conversation.",
    param: "thread",
    code: THREADS_UNSUPPORTED_CODE,
  });
}

/** Applies the stricter rules of version 2026-10-21, so that all routes return the same errors. */
function checkNewerRules(body: MessagesBody): Result<never> | null {
  for (const field of ["temperature", "top_p", "top_k"] as const) {
    if ((body[field] ?? null) !== null) {
      return invalid(`${field}: Extra inputs are not permitted`, field);
    }
  }
  for (const [messageIndex, { role, content: blocks }] of body.messages.entries()) {
    if (typeof blocks === "string") continue;
    for (const [blockIndex, part] of blocks.entries()) {
      const path = `messages[${messageIndex}].content[${blockIndex}]`;
      if (role === "assistant" && part.type === "document") {
        return invalid(`${path}: assistant messages can't have documents`, path);
      }
      if (role === "user" && hasCitations(part)) {
        return invalid(`${path}.citations: Extra inputs are not permitted`, `${path}.citations`);
      }
    }
  }
  return null;
}

function hasCitations(part: MessagesInputBlock | TextBlock): boolean {
  if (part.type === "search_result") {
    return (part as { content: MessagesInputBlock[] }).content.some(hasCitations);
  }
  if (part.type !== "text") return false;
  const { citations } = part;
  return Array.isArray(citations) && citations.length > 0;
}

function rejectFiles() {
  return z.optional(z.never({ error: NO_FILES }));
}
