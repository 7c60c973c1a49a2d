import * as z from "zod/mini";
import { invalid } from "../../../lib/failure.ts";
import type { Refusal } from "../../../lib/failure.ts";
import { isObject } from "../../../providers/json-value.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import { tools } from "./tools.ts";

/**
 * What `input` may hold (openai npm, ResponseInputItem; Codex' own items beside them). Known fields are
 * kept, the rest is dropped. Where a field may be left out it may be null.
 */
const nonempty = z.string().check(z.minLength(1));
const text = z.nullish(z.string());

const textPart = z.object({
  type: z.enum(["input_text", "output_text", "text"]),
  text: z.string(),
});
const refusalPart = z.object({ type: z.literal("refusal"), refusal: z.string() });
const imagePart = z.object({
  type: z.literal("input_image"),
  image_url: text,
  file_id: text,
  detail: z.nullish(z.enum(["auto", "low", "high", "original"])),
});
const filePart = z.object({
  type: z.literal("input_file"),
  file_data: text,
  file_id: text,
  file_url: text,
  filename: text,
  detail: text,
});
const part = z.discriminatedUnion("type", [textPart, refusalPart, imagePart, filePart]);
export type InputPart = z.infer<typeof part>;

const message = z.object({
  type: z.literal("message"),
  role: z.enum(["user", "system", "developer", "assistant"]),
  content: z.union([z.string(), z.array(part)]),
  phase: text,
});
const output = z.union([z.string(), z.array(part)]);
const called = { call_id: nonempty, name: nonempty, namespace: text };
const answered = { call_id: nonempty, output };

const item = z.discriminatedUnion("type", [
  message,
  z.object({ type: z.literal("function_call"), ...called, arguments: z.string() }),
  z.object({ type: z.literal("function_call_output"), ...answered }),
  z.object({ type: z.literal("custom_tool_call"), ...called, input: z.string() }),
  z.object({ type: z.literal("custom_tool_call_output"), ...answered }),
  z.object({ type: z.literal("reasoning"), id: text, encrypted_content: text }),
  z.object({ type: z.literal("additional_tools"), tools }),
  z.looseObject({ type: z.literal("agent_message") }),
  // What a provider's own tools did: its answer followed, which the history holds.
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

const ITEMS_MAX = 10_000;

/** `input` of a request whose items `withTypes` has named. */
export const input = z.union([
  z.string().check(z.minLength(1)),
  z.array(item).check(z.minLength(1), z.maxLength(ITEMS_MAX)),
]);

/** The items as they were sent, each with the type that it means: a role alone is a message, an id alone a reference. */
export function withTypes(raw: unknown): unknown {
  return Array.isArray(raw) ? raw.map(withType) : raw;
}

function withType(raw: unknown): unknown {
  if (!isObject(raw) || (raw["type"] ?? null) !== null) return raw;
  if (raw["role"] !== undefined) return { ...raw, type: "message" };
  return raw["id"] === undefined ? raw : { ...raw, type: "item_reference" };
}

const NOT_STORED =
  "Responses are not stored here, so an item cannot be named by its id: send the item itself, and set store to false (AI SDK: providerOptions.openai.store = false).";
const HOSTED =
  "The output of a tool that belongs to a provider cannot be given to another: send it as function_call and function_call_output.";

/** Items that another deployment would know, and why they are none here. */
const REFUSED: ReadonlyMap<unknown, string> = new Map([
  ["item_reference", NOT_STORED],
  ...[
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
  ].map((type) => [type, HOSTED] as const),
]);

/** Why an item cannot be taken, in better words than a list of what could; null where the schema says it. */
export function refusedItem(items: unknown): Refusal | null {
  if (!Array.isArray(items)) return null;
  for (const [index, raw] of items.entries()) {
    if (!isObject(raw)) continue;
    const problem = REFUSED.get(raw["type"]);
    const at = `input[${index}]`;
    if (problem !== undefined) return invalid(problem, `${at}.type`);
    if (isOutput(raw) && (raw["call_id"] ?? null) === null) {
      return invalid("The output of a call names its call by 'call_id'.", `${at}.call_id`);
    }
  }
  return null;
}

function isOutput({ type }: JsonObject): boolean {
  return type === "function_call_output" || type === "custom_tool_call_output";
}
