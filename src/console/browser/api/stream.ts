import { failureOf } from "./client.ts";
import type { CallFailure } from "./client.ts";

type StreamProgress =
  | {
      readonly kind: "head";
      readonly id: string;
      readonly route: string;
      readonly grantedMaxTokens: string | null;
      readonly dropped: string | null;
    }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thought"; readonly text: string }
  | { readonly kind: "calls"; readonly text: string }
  | {
      readonly kind: "usage";
      readonly input: number;
      readonly output: number;
      readonly costMicro: number;
    }
  | { readonly kind: "failed"; readonly failure: CallFailure };

type Usage = {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly cost_micro?: number;
};
type Message = {
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly { readonly function?: { name?: string; arguments?: string } }[];
};
type Chunk = {
  readonly choices?: readonly { readonly delta?: Message; readonly message?: Message }[];
  readonly usage?: Usage | null;
  readonly error?: { readonly message?: string };
};

export async function* streamCompletion(
  body: object,
  signal: AbortSignal,
): AsyncGenerator<StreamProgress> {
  const response = await fetch("/console/api/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok) {
    yield { kind: "failed", failure: failureOf(response, await response.text()) };
    return;
  }
  yield {
    kind: "head",
    id: response.headers.get("x-request-id") ?? "",
    route: response.headers.get("x-route") ?? "",
    grantedMaxTokens: response.headers.get("x-granted-max-tokens"),
    dropped: response.headers.get("x-dropped"),
  };
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (!isStream) {
    yield* progressOf(JSON.parse(await response.text()) as Chunk, response);
    return;
  }
  for await (const data of readEvents(response)) {
    if (data !== "[DONE]") yield* progressOf(JSON.parse(data) as Chunk, response);
  }
}

function* progressOf(
  { choices, usage, error }: Chunk,
  response: Response,
): Generator<StreamProgress> {
  for (const { delta, message } of choices ?? []) yield* progressOfMessage(delta ?? message ?? {});
  if (usage) yield usageOf(usage, response);
  if (error) yield { kind: "failed", failure: failureOf(response, JSON.stringify({ error })) };
}

function* progressOfMessage({
  reasoning_content,
  content,
  tool_calls,
}: Message): Generator<StreamProgress> {
  if (reasoning_content) yield { kind: "thought", text: reasoning_content };
  if (content) yield { kind: "text", text: content };
  for (const { function: called = {} } of tool_calls ?? []) {
    yield { kind: "calls", text: `${called.name ?? ""}${called.arguments ?? ""}` };
  }
}

function usageOf(
  { prompt_tokens, completion_tokens, cost_micro }: Usage,
  response: Response,
): StreamProgress {
  return {
    kind: "usage",
    input: prompt_tokens ?? 0,
    output: completion_tokens ?? 0,
    costMicro: cost_micro ?? Number(response.headers.get("x-cost-micro") ?? 0),
  };
}

async function* readEvents(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let unparsed = "";
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
    unparsed += value ?? "";
    const events = unparsed.split("\n\n");
    unparsed = events.pop() ?? "";
    for (const event of events) {
      if (event.startsWith("data: ")) yield event.slice("data: ".length);
    }
    if (done) return;
  }
}
