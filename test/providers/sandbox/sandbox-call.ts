import type { CallKind } from "../../../src/shared/kinds.ts";
import type { Usage } from "../../../src/shared/usage.ts";
import type {
  ChatCall,
  EventStream,
  JsonObject,
  ProviderResult,
  ProviderCall,
  StreamEvent,
} from "../../../src/models/core/provider.ts";
import { createSandboxProvider } from "../../../src/models/providers/sandbox/sandbox.ts";

export const sandbox = createSandboxProvider({ firstByteMs: 2, wordMs: 1, endlessMs: 0 });

export function user(content: unknown): JsonObject {
  return { role: "user", content };
}

type CallOptions = Partial<Omit<ChatCall, "kind" | "body">> & { readonly kind?: CallKind };

/** Calls the sandbox's echo, or another model by `upstreamId`. */
export function callSandbox(body: JsonObject, options: CallOptions = {}): Promise<ProviderResult> {
  const signal = new AbortController().signal;
  const call = { kind: "chat", upstreamId: "echo", stream: false, cap: 4096, signal } as const;
  return sandbox.send({ ...call, ...options, body } as ProviderCall);
}

// The tests read OpenAI's formats by path; missing fields fail their expectations.
type Message = {
  role: string;
  content: string | null;
  refusal: null;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
};
type Choice = {
  index: number;
  message: Message;
  finish_reason: string;
  logprobs: { content: LogprobEntry[]; refusal: null } | null;
};
type LogprobEntry = {
  token: string;
  logprob: number;
  bytes: number[];
  top_logprobs: { token: string; logprob: number; bytes: number[] }[];
};
export type Completion = { choices: [Choice, ...Choice[]]; usage: Usage | null };

/** Returns the completion and usage of a JSON response. Throws for any other result. */
export async function complete(body: JsonObject, options: CallOptions = {}): Promise<Completion> {
  const answer = await callSandbox(body, options);
  if (answer.kind !== "json") throw new Error(JSON.stringify(answer));
  return { ...answer.body, usage: answer.usage } as Completion;
}

export async function replyTo(content: unknown, body: JsonObject = {}): Promise<string | null> {
  const completion = await complete({ messages: [user(content)], ...body });
  return completion.choices[0].message.content;
}

export async function open(body: JsonObject, options: CallOptions = {}): Promise<EventStream> {
  const answer = await callSandbox(body, { ...options, stream: true });
  if (answer.kind !== "stream") throw new Error(JSON.stringify(answer));
  return answer.events;
}

/** Returns the batches of a stream to its end, at most `max`. */
export async function batches(
  stream: EventStream,
  max = Infinity,
): Promise<(readonly StreamEvent[])[]> {
  const all: (readonly StreamEvent[])[] = [];
  while (all.length < max) {
    const events = await stream.next();
    if (events === null) break;
    all.push(events);
  }
  return all;
}

export async function streamed(
  body: JsonObject,
  options: CallOptions = {},
): Promise<StreamEvent[]> {
  return (await batches(await open(body, options))).flat();
}

type Delta = {
  role?: string;
  content?: string | null;
  tool_calls?: {
    index: number;
    id?: string;
    type?: string;
    function: { name?: string; arguments: string };
  }[];
};
type ChunkChoice = {
  index: number;
  delta: Delta;
  logprobs: { content: LogprobEntry[] } | null;
  finish_reason: string | null;
};

/** Returns the only choice of each chunk. */
export function chunkChoices(all: readonly StreamEvent[]): ChunkChoice[] {
  return all.flatMap((event) =>
    event.kind === "chunk" ? (event.chunk["choices"] as ChunkChoice[]) : [],
  );
}

export function contentOf(all: readonly StreamEvent[]): string {
  return chunkChoices(all)
    .map((choice) => choice.delta.content ?? "")
    .join("");
}
