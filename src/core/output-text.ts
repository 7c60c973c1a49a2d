/** A message or a delta of OpenAI's, as far as its text counts as output. */
type Spoken = {
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
  readonly refusal?: unknown;
  readonly tool_calls?: unknown;
  readonly function_call?: Called | null | undefined;
};
type Called = { readonly name?: unknown; readonly arguments?: unknown; readonly input?: unknown };
type ToolCall = { readonly function?: Called; readonly custom?: Called };

/** All that a model said in a message or a delta: text, and names and arguments of calls, not their JSON. */
export function outputText(spoken: Spoken): string {
  let all = text(spoken.content) + text(spoken.reasoning_content) + text(spoken.refusal);
  if (spoken.function_call !== undefined) all += callText(spoken.function_call);
  if (!Array.isArray(spoken.tool_calls)) return all;
  for (const call of spoken.tool_calls as (ToolCall | null)[]) {
    all += callText(call?.function) + callText(call?.custom);
  }
  return all;
}

function callText(called: Called | null | undefined): string {
  return text(called?.name) + text(called?.arguments) + text(called?.input);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
