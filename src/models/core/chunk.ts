import type { JsonObject } from "./json-value.ts";

/** The part of a message in one chunk. */
export type Delta = {
  readonly role?: "assistant";
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string;
  /** A copy of `reasoning_content` for OpenRouter's clients. */
  readonly reasoning?: string;
  readonly reasoning_details?: readonly JsonObject[];
  readonly annotations?: readonly unknown[];
  readonly tool_calls?: readonly ToolCallDelta[];
  readonly function_call?: FunctionDelta;
};

/**
 * A tool call, or a piece of one. Pieces of a call share `index`. Only the first piece has the ID,
 * type and name.
 */
export type ToolCallDelta = {
  readonly index?: number;
  readonly id?: string;
  readonly type?: "function" | "custom";
  readonly function?: FunctionDelta;
  readonly custom?: { readonly name?: string; readonly input?: string };
  readonly extra_content?: JsonObject;
};
export type FunctionDelta = { readonly name?: string; readonly arguments?: string };

type ChoiceHead = {
  readonly index: number;
  readonly logprobs?: JsonObject | null;
  readonly finish_reason: string | null;
};
export type ChunkChoice = ChoiceHead & { readonly delta: Delta };

export type Chunk = {
  readonly service_tier?: string;
  readonly system_fingerprint?: string;
  readonly choices: readonly ChunkChoice[];
};

export type CompletionChoice = ChoiceHead & { readonly message: Delta };

export type Completion = Omit<Chunk, "choices"> & { readonly choices: readonly CompletionChoice[] };

/** Joins the text, reasoning, refusal and tool calls of a delta. */
export function joinOutputText({ content, ...spoken }: Delta): string {
  const { reasoning_content: thought = "", refusal, function_call: functionCall } = spoken;
  let all = (content ?? "") + thought + (refusal ?? "") + callText(functionCall);
  for (const call of spoken.tool_calls ?? []) {
    all += callText(call.function) + callText(call.custom);
  }
  return all;
}

function callText({
  name = "",
  arguments: argumentsText = "",
  input = "",
}: { readonly name?: string; readonly arguments?: string; readonly input?: string } = {}): string {
  return name + argumentsText + input;
}
