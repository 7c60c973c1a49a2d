import type { Delta } from "./chunk.ts";

export function outputText({ content, ...spoken }: Delta): string {
  const { reasoning_content: thought = "", refusal, function_call: legacy } = spoken;
  let all = (content ?? "") + thought + (refusal ?? "") + callText(legacy);
  for (const call of spoken.tool_calls ?? []) {
    all += callText(call.function) + callText(call.custom);
  }
  return all;
}

type Called = { readonly name?: string; readonly arguments?: string; readonly input?: string };

function callText({ name = "", arguments: given = "", input = "" }: Called = {}): string {
  return name + given + input;
}
