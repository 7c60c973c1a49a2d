import { distributedHash32, base62Hash } from "../../../shared/hash.ts";
import type { ChatBody } from "../../core/core-request.ts";
import { NO_USAGE } from "../../../shared/usage.ts";
import type { Usage } from "../../../shared/usage.ts";
import type { JsonObject, ChatCall, ProviderFailure, StreamEvent } from "../../core/provider.ts";
import { countPromptTokens, createSandboxReplies } from "./reply.ts";
import type { SandboxReplyOptions, SandboxReply, SandboxToolCall } from "./reply.ts";
import { countTokens, splitIntoTokens, splitJsonFragments, splitIntoWords } from "./tokens.ts";
import type { ChunkChoice } from "../../core/chunk.ts";

export type SandboxCompletion = {
  readonly replies: readonly SandboxReply[];
  /** The reported usage. Null simulates a provider that reports no usage. */
  readonly usage: Usage | null;
  readonly topLogprobs: number | null;
  readonly split: ((text: string) => readonly string[]) | null;
};

/** The fields that all chunks share. */
const HEAD = { system_fingerprint: "fp_sandbox" };

export function createSandboxCompletion(
  call: ChatCall,
  mode: SandboxReplyOptions = {},
): SandboxCompletion | ProviderFailure {
  const replies = createSandboxReplies(call.body, call.cap, mode);
  if ("kind" in replies) return replies;
  const reasoning = replies.reduce((sum, { thought }) => sum + countTokens(thought), 0);
  const output = replies.reduce((sum, reply) => sum + reply.tokens, reasoning);
  const usage = { ...NO_USAGE, input: countPromptTokens(call.body), output, reasoning };
  const topLogprobs = requestedTopLogprobs(call.body);
  const split = topLogprobs === null ? null : splitIntoTokens;
  return { replies, usage, topLogprobs, split };
}

export function toSandboxChatBody(answer: SandboxCompletion): JsonObject {
  const choices = answer.replies.map((reply, index) => ({
    index,
    message: messageOf(reply),
    logprobs: sandboxLogprobs(answer, reply.content),
    finish_reason: reply.finish,
  }));
  return { ...HEAD, choices };
}

function sandboxLogprobs(answer: SandboxCompletion, content: string | null): JsonObject | null {
  if (answer.topLogprobs === null || content === null) return null;
  const { topLogprobs: alternatives } = answer;
  return {
    content: splitIntoTokens(content).map((token) => tokenEntry(token, alternatives)),
    refusal: null,
  };
}

function messageOf(reply: SandboxReply): JsonObject {
  const message = {
    role: "assistant",
    content: reply.content,
    refusal: null,
    ...(reply.thought !== "" && {
      reasoning_content: reply.thought,
      reasoning_details: [sandboxThoughtDetail(reply.thought)],
    }),
  };
  if (reply.calls.length === 0) return message;
  const calls = reply.calls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
  }));
  return { ...message, tool_calls: calls };
}

function sandboxThoughtDetail(thinking: string): JsonObject {
  return { type: "sandbox.thinking", thinking, signature: base62Hash(thinking, 24) };
}

const ALTERNATIVE_TOKENS =
  " the, a, and, of, to, in, is, that, it, for, on, with, as, was, at, by, be, this, are, or, an";
const utf8 = new TextEncoder();

function requestedTopLogprobs({
  logprobs,
  top_logprobs: topLogprobs = 0,
}: ChatBody): number | null {
  return logprobs === true ? topLogprobs : null;
}

function tokenEntry(token: string, alternatives: number): JsonObject {
  const logprob = -(distributedHash32(token) % 500) / 1000; // at least e^-0.5 = 0.61, so no other token is more probable
  const others = ALTERNATIVE_TOKENS.split(",").filter((other) => other !== token);
  const topEntries = [token, ...others].slice(0, alternatives).map((other, rank) => {
    const lowerLogprob = -1 - rank - (distributedHash32(token + other) % 1000) / 1000;
    return logprobEntry(other, rank === 0 ? logprob : lowerLogprob);
  });
  return { ...logprobEntry(token, logprob), top_logprobs: topEntries };
}

function logprobEntry(token: string, logprob: number): JsonObject {
  return { token, logprob: logprob + 0, bytes: [...utf8.encode(token)] };
}

/**
 * Yields a response as OpenAI streams it. A choice starts with its role and ends with the finish
 * reason in an empty delta. Events of several choices alternate.
 */
export function* generateSandboxEvents(answer: SandboxCompletion): Generator<StreamEvent> {
  yield* alternate(answer.replies.map((reply, index) => choiceEvents(answer, reply, index)));
  if (answer.usage !== null) yield { kind: "usage", usage: answer.usage };
  yield { kind: "end" };
}

export function createContentEvent(content: string): StreamEvent {
  return event({ index: 0, delta: { content }, logprobs: null, finish_reason: null });
}

function* choiceEvents(
  answer: SandboxCompletion,
  reply: SandboxReply,
  index: number,
): Generator<StreamEvent> {
  const unfinishedChoice = { index, logprobs: null, finish_reason: null };
  const content = reply.content === null ? null : "";
  yield event({ ...unfinishedChoice, delta: { role: "assistant", content, refusal: null } });
  for (const piece of splitIntoWords(reply.thought)) {
    yield event({ ...unfinishedChoice, delta: { reasoning_content: piece } });
  }
  if (reply.thought !== "") {
    yield event({
      ...unfinishedChoice,
      delta: { reasoning_details: [sandboxThoughtDetail(reply.thought)] },
    });
  }
  const split = answer.split ?? reply.split;
  for (const piece of split(reply.content ?? "")) {
    const logprobs = sandboxLogprobs(answer, piece);
    yield event({ index, delta: { content: piece }, logprobs, finish_reason: null });
  }
  for (const [position, call] of reply.calls.entries()) {
    for (const delta of callDeltas(call, position)) {
      yield event({ ...unfinishedChoice, delta });
    }
  }
  yield event({ ...unfinishedChoice, delta: {}, finish_reason: reply.finish });
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

function event(choice: ChunkChoice): StreamEvent {
  return { kind: "chunk", chunk: { ...HEAD, choices: [choice] } };
}

export function isFinishEvent(streamEvent: StreamEvent): boolean {
  if (streamEvent.kind !== "chunk") return true;
  return streamEvent.chunk.choices.some((one) => one.finish_reason !== null);
}
