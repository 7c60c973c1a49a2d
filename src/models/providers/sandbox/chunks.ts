import type { JsonObject, StreamEvent } from "../../core/provider.ts";
import { sandboxLogprobs, sandboxThoughtDetail } from "./answer.ts";
import type { SandboxCompletionHead, SandboxCompletion } from "./answer.ts";
import type { ChunkChoice } from "../../core/chunk.ts";
import { splitJsonFragments, splitIntoWords } from "./tokens.ts";
import type { SandboxReply } from "./reply.ts";
import type { SandboxToolCall } from "./calls.ts";

/**
 * Yields a response as OpenAI streams it. A choice starts with its role and ends with the finish
 * reason in an empty delta. Choices alternate.
 */
export function* sandboxEvents(answer: SandboxCompletion): Generator<StreamEvent> {
  const [singleReply] = answer.replies;
  if (singleReply !== undefined && answer.replies.length === 1) {
    yield* choiceEvents(answer, singleReply, 0);
  } else yield* alternate(answer.replies.map((reply, index) => choiceEvents(answer, reply, index)));
  if (answer.usage !== null) yield { kind: "usage", usage: answer.usage };
  yield { kind: "end" };
}

export function contentEvent(head: SandboxCompletionHead, content: string): StreamEvent {
  return event(head, { index: 0, delta: { content }, logprobs: null, finish_reason: null });
}

function* choiceEvents(
  answer: SandboxCompletion,
  reply: SandboxReply,
  index: number,
): Generator<StreamEvent> {
  const { head } = answer;
  const unfinishedChoice = { index, logprobs: null, finish_reason: null };
  const content = reply.content === null ? null : "";
  yield event(head, { ...unfinishedChoice, delta: { role: "assistant", content, refusal: null } });
  for (const piece of splitIntoWords(reply.thought)) {
    yield event(head, { ...unfinishedChoice, delta: { reasoning_content: piece } });
  }
  if (reply.thought !== "") {
    yield event(head, {
      ...unfinishedChoice,
      delta: { reasoning_details: [sandboxThoughtDetail(reply.thought)] },
    });
  }
  const split = answer.split ?? reply.split;
  for (const piece of split(reply.content ?? "")) {
    const logprobs = sandboxLogprobs(answer, piece);
    yield event(head, { index, delta: { content: piece }, logprobs, finish_reason: null });
  }
  for (const [position, call] of reply.calls.entries()) {
    for (const delta of callDeltas(call, position)) {
      yield event(head, { ...unfinishedChoice, delta });
    }
  }
  yield event(head, { ...unfinishedChoice, delta: {}, finish_reason: reply.finish });
}

function* callDeltas(call: SandboxToolCall, index: number): Generator<JsonObject> {
  const opening = { name: call.name, arguments: "" };
  yield { tool_calls: [{ index, id: call.id, type: "function", function: opening }] };
  for (const fragment of splitJsonFragments(call.arguments)) {
    yield { tool_calls: [{ index, function: { arguments: fragment } }] };
  }
}

function* alternate(choices: readonly Generator<StreamEvent>[]): Generator<StreamEvent> {
  let unfinished = choices;
  while (unfinished.length > 0) {
    const remaining: Generator<StreamEvent>[] = [];
    for (const choice of unfinished) {
      const step = choice.next();
      if (step.done === true) continue;
      remaining.push(choice);
      yield step.value;
    }
    unfinished = remaining;
  }
}

function event(head: SandboxCompletionHead, choice: ChunkChoice): StreamEvent {
  const { id, created, model, system_fingerprint } = head;
  const object = "chat.completion.chunk";
  return {
    kind: "chunk",
    chunk: { id, object, created, model, system_fingerprint, choices: [choice] },
  };
}

export function isFinish(streamEvent: StreamEvent): boolean {
  if (streamEvent.kind !== "chunk") return true;
  return streamEvent.chunk.choices.some((one) => one.finish_reason !== null);
}
