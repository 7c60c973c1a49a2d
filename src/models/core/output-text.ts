import type { Delta } from "./chunk.ts";

export function outputText({ content, ...spoken }: Delta): string {
  const { reasoning_content: thought = "", refusal, function_call: functionCall } = spoken;
  let all = (content ?? "") + thought + (refusal ?? "") + callText(functionCall);
  for (const call of spoken.tool_calls ?? []) {
    all += callText(call.function) + callText(call.custom);
  }
  return all;
}

type CalledFunction = {
  readonly name?: string;
  readonly arguments?: string;
  readonly input?: string;
};

function callText({
  name = "",
  arguments: argumentsText = "",
  input = "",
}: CalledFunction = {}): string {
  return name + argumentsText + input;
}
