import type { ProviderFailure } from "../../core/provider.ts";
import { readSandboxQuestion } from "./question.ts";
import type { SandboxQuestion } from "./question.ts";
import { legacyFunctionsFailure, usesLegacyFunctions } from "../../core/conversation.ts";
import type { ChatBody } from "../../core/core-request.ts";
import { splitJsonFragments, splitIntoWords } from "./tokens.ts";
import { schemaInstance } from "./schema-instance.ts";
import { countTokens, cutToTokens } from "./tokens.ts";
import { sandboxCallsFor, callsWithIds } from "./calls.ts";
import type { SandboxCallDraft, SandboxToolCall } from "./calls.ts";

export type SandboxReply = {
  readonly content: string | null;
  readonly thought: string;
  readonly calls: readonly SandboxToolCall[];
  readonly finish: "stop" | "length" | "tool_calls";
  readonly tokens: number;
  readonly split: (text: string) => readonly string[];
};

type RepliesResult =
  | { readonly ok: true; readonly replies: readonly SandboxReply[] }
  | { readonly ok: false; readonly failure: ProviderFailure };

export type SandboxMode = {
  readonly opening?: string;
  /** Whether the model writes a sentence before its calls, and calls the first tool by default. */
  readonly isAgent?: boolean;
  readonly thinks?: boolean;
};

const GREETING = "Hello! Say something as the user and this model repeats it.";

/**
 * Returns one reply per choice. It calls the matching tools, reports tool results, or repeats the
 * last user text after `opening`. Output beyond `cap` tokens is cut.
 */
export function sandboxRepliesTo(
  body: ChatBody,
  cap: number,
  mode: SandboxMode = {},
): RepliesResult {
  const { opening = "", thinks = false } = mode;
  if (body.messages.some(usesLegacyFunctions)) {
    return { ok: false, failure: legacyFunctionsFailure() };
  }
  const conversation = readSandboxQuestion(body);
  const calls = sandboxCallsFor(body, conversation, mode.isAgent === true);
  if ("kind" in calls) return { ok: false, failure: calls };
  const { n: choices = 1 } = body;
  const thought = thinks && body.reasoning_effort !== "none" ? thoughtOf(conversation, cap) : "";
  const tokensLeft = cap - countTokens(thought);
  if (calls.length === 0) {
    const reply = textReply(body, opening + textFor(conversation), tokensLeft);
    return { ok: true, replies: Array.from({ length: choices }, () => ({ ...reply, thought })) };
  }
  const { drafts, ...reported } = callReply(calls, tokensLeft, sentenceBefore(calls, mode));
  const replies = Array.from({ length: choices }, (_, index): SandboxReply => {
    const seed = `${conversation.messageCount} ${index} ${conversation.userText ?? ""}`;
    return { ...reported, thought, calls: callsWithIds(drafts, seed), split: splitIntoWords };
  });
  return { ok: true, replies };
}

function thoughtOf({ userText: ask, results }: SandboxQuestion, cap: number): string {
  const plan =
    results.length > 0 ? "The results are here; I tell them." : "I repeat what was said.";
  return cutToTokens(`The user said: ${ask ?? "nothing"}. ${plan}`, Math.floor(cap / 2));
}

function textFor(conversation: SandboxQuestion): string {
  if (conversation.results.length === 0) return conversation.userText ?? GREETING;
  return conversation.results
    .map((result) => `${result.tool ?? "The tool"} returned: ${result.text}`)
    .join("\n");
}

function textReply(body: ChatBody, text: string, cap: number): SandboxReply {
  const formatted = formatText(body.response_format, text);
  const fullText = cutAtStop(formatted.text, body.stop);
  const content = cutToTokens(fullText, cap);
  const finish = content.length < fullText.length ? "length" : "stop";
  return {
    content,
    thought: "",
    calls: [],
    finish,
    tokens: countTokens(content),
    split: formatted.split,
  };
}

function formatText(
  format: ChatBody["response_format"],
  text: string,
): Pick<SandboxReply, "split"> & { text: string } {
  if (format === undefined || format.type === "text") return { text, split: splitIntoWords };
  const schema = format.type === "json_schema" ? format.json_schema.schema : undefined;
  const value = schema === undefined ? { echo: text } : schemaInstance(schema);
  return { text: JSON.stringify(value), split: splitJsonFragments };
}

function cutAtStop(text: string, stop: ChatBody["stop"]): string {
  let end = text.length;
  for (const sequence of [stop ?? []].flat()) {
    if (sequence === "") continue;
    const at = text.indexOf(sequence);
    if (at >= 0) end = Math.min(end, at);
  }
  return text.slice(0, end);
}

function sentenceBefore(
  calls: readonly SandboxCallDraft[],
  { isAgent = false }: SandboxMode,
): string {
  return isAgent ? `I call ${calls[0]?.name}.` : "";
}

function callReply(calls: readonly SandboxCallDraft[], cap: number, sentence: string): CallReply {
  const content = sentence === "" ? null : cutToTokens(sentence, cap);
  const drafts: SandboxCallDraft[] = [];
  let tokens = countTokens(content ?? "");
  let isCut = false;
  for (const draft of calls) {
    const tokensLeft = cap - tokens - countTokens(draft.name);
    isCut = tokensLeft < countTokens(draft.arguments);
    if (tokensLeft < 0) break;
    const args = isCut ? cutToTokens(draft.arguments, tokensLeft) : draft.arguments;
    drafts.push({ name: draft.name, arguments: args });
    tokens += countTokens(draft.name) + countTokens(args);
    if (isCut) break;
  }
  return { content, drafts, finish: isCut ? "length" : "tool_calls", tokens };
}

type CallReply = Pick<SandboxReply, "content" | "finish" | "tokens"> & {
  readonly drafts: readonly SandboxCallDraft[];
};
