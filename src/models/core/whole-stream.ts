import type { Completion, Delta } from "./chunk.ts";
import { END_EVENT } from "./frame-reader.ts";
import type { ProviderResponse, StreamEvent } from "./provider.ts";

export function eventsOfResponse({ body, usage }: ProviderResponse): StreamEvent[] {
  const { choices, usage: _usage, ...head } = body as Completion;
  const events = choices.flatMap(({ index, message, logprobs = null, finish_reason: reason }) => {
    const deltas: readonly Delta[] = [...deltasOf(message), {}];
    return deltas.map((delta, at): StreamEvent => {
      const isLast = at === deltas.length - 1;
      const reported = { index, delta, logprobs: at === 0 ? logprobs : null };
      const choice = { ...reported, finish_reason: isLast ? reason : null };
      const chunk = { ...head, object: "chat.completion.chunk", choices: [choice] };
      return { kind: "chunk", chunk };
    });
  });
  if (usage !== null) events.push({ kind: "usage", usage });
  return [...events, END_EVENT];
}

function deltasOf({ tool_calls: calls = [], refusal, ...message }: Delta): Delta[] {
  const first = refusal === null || refusal === undefined ? message : { ...message, refusal };
  return [first, ...calls.map((call, index) => ({ tool_calls: [{ index, ...call }] }))];
}
