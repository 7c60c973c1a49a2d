import { reasoningItem } from "../../../providers/openai-responses/rules.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import { agentText, fileText, partsInText } from "./input.ts";
import type { InputItem, InputPart } from "./items.ts";
import { unsealed } from "./reasoning.ts";
import { LOGPROBS, shownOf } from "./request.ts";
import type { ResponsesBody } from "./request.ts";
import { flatName, nativeChoice } from "./tools.ts";
import type { Flattened } from "./tools.ts";

/**
 * A checked request as it passes to a route of this dialect (OpenAI's own), without what the adapter sets: model,
 * stream, cap, tier, and that nothing is stored. What is named here goes on; everything else is left out, and named
 * where that could change the answer. `prompt_cache_key` goes as the client's: the adapter makes it ours.
 */
export type NativeRequest = { readonly body: JsonObject; readonly dropped: readonly string[] };

/** Fields that pass as they are. */
const PASSES = ["temperature", "top_p", "truncation", "prompt_cache_key"] as const;
/** Fields of the dialect that OpenAI's own host does not know. */
const UNKNOWN_THERE = ["presence_penalty", "frequency_penalty"] as const;

/** Pure; what could be refused was refused before. */
export function nativeOf(body: ResponsesBody, flat: Flattened): NativeRequest {
  const { instructions, tool_choice: choice, parallel_tool_calls: parallel } = body;
  const { input, left } = inputOf(body);
  const { logprobs } = shownOf(body);
  const hasTools = flat.own.length > 0;
  const passed = PASSES.filter((field) => body[field] !== undefined);
  return {
    body: {
      input,
      ...(instructions && { instructions }),
      ...Object.fromEntries(passed.map((field) => [field, body[field]])),
      ...(hasTools && {
        tools: flat.own,
        ...(choice !== undefined && { tool_choice: nativeChoice(flat, choice) }),
        ...(parallel !== undefined && { parallel_tool_calls: parallel }),
      }),
      ...textOfAnswer(body),
      ...reasoningOf(body),
      ...(logprobs && { include: [LOGPROBS], top_logprobs: body.top_logprobs ?? 0 }),
    },
    dropped: [...UNKNOWN_THERE.filter((field) => (body[field] ?? 0) !== 0), ...left],
  };
}

function textOfAnswer({ text }: ResponsesBody): JsonObject {
  const { format, verbosity } = text ?? {};
  const { type, name, schema, strict, description } = (format ?? {}) as JsonObject;
  const said = given({
    format: format ? given({ type, name, schema, strict, description }) : undefined,
    verbosity,
  });
  return Object.keys(said).length === 0 ? {} : { text: said };
}

function reasoningOf({ reasoning }: ResponsesBody): JsonObject {
  const { effort, summary, generate_summary: old } = reasoning ?? {};
  const context = reasoning?.["context"];
  const said = given({
    effort,
    summary: summary ?? old,
    context: typeof context === "string" ? context : undefined,
  });
  return Object.keys(said).length === 0 ? {} : { reasoning: said };
}

function given(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
}

type Input = { readonly input: string | readonly JsonObject[]; readonly left: readonly string[] };

function inputOf({ input }: ResponsesBody): Input {
  if (typeof input === "string") return { input, left: [] };
  const left = new Set<string>();
  const items = input.flatMap((item) => {
    const passed = itemsOf(item);
    if (passed.length === 0 && item.type !== "additional_tools") left.add(`input.${item.type}`);
    return passed;
  });
  return { input: items.filter(leadsOn), left: [...left] };
}

/** Reasoning goes with what it led to, or not at all: alone it is a 400 there. */
function leadsOn({ type }: JsonObject, at: number, items: readonly JsonObject[]): boolean {
  if (type !== "reasoning") return true;
  const next = items.slice(at + 1).find((item) => item["type"] !== "reasoning");
  return next !== undefined && (next["role"] === "assistant" || CALLS.has(next["type"]));
}

const CALLS: ReadonlySet<unknown> = new Set(["function_call", "custom_tool_call"]);

/** An item as it passes, without ids: nothing is stored that they could name. */
function itemsOf(item: InputItem): JsonObject[] {
  // oxlint-disable-next-line switch-exhaustiveness-check -- the rest does not pass
  switch (item.type) {
    case "message":
      return [messageOf(item)];
    case "function_call":
    case "custom_tool_call":
      return [calledBy(item)];
    case "function_call_output":
    case "custom_tool_call_output": {
      const { type, call_id, output } = item;
      const parts = typeof output === "string" ? partsInText(output) : output;
      return [{ type, call_id, output: parts === null ? output : parts.map(inputPart) }];
    }
    case "reasoning":
      return thoughtsIn(item.encrypted_content ?? "");
    case "agent_message":
      return [{ type: "message", role: "user", content: agentText(item) }];
    default:
      return [];
  }
}

function calledBy(
  item: Extract<InputItem, { type: "function_call" | "custom_tool_call" }>,
): JsonObject {
  const { type, call_id, name, namespace } = item;
  const called = { type, call_id, name: flatName(namespace ?? null, name) };
  return item.type === "function_call"
    ? { ...called, arguments: item.arguments }
    : { ...called, input: item.input };
}

function messageOf({ role, content, phase }: Extract<InputItem, { type: "message" }>): JsonObject {
  const isAssistant = role === "assistant";
  return {
    type: "message",
    role,
    content:
      typeof content === "string" ? content : content.map(isAssistant ? saidPart : inputPart),
    ...(isAssistant && phase && { phase }),
  };
}

function saidPart(part: InputPart): JsonObject {
  if (part.type === "refusal") return { type: "refusal", refusal: part.refusal };
  return { type: "output_text", text: "text" in part ? part.text : "" };
}

function inputPart(part: InputPart): JsonObject {
  if (part.type === "input_image") {
    return { type: "input_image", image_url: part.image_url, detail: part.detail ?? "auto" };
  }
  if (part.type === "refusal") return { type: "input_text", text: part.refusal };
  if (part.type !== "input_file") return { type: "input_text", text: part.text };
  const read = fileText(part, "");
  return { type: "input_text", text: read.ok ? read.value.text : "" };
}

/** The reasoning of OpenAI's own that an item of ours keeps; nobody else's could be read there. */
function thoughtsIn(encrypted: string): JsonObject[] {
  const details = unsealed(encrypted)?.details ?? [];
  return details.map(reasoningItem).filter((item) => item !== null);
}
