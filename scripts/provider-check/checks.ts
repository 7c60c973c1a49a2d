import type { Usage } from "../../src/shared/usage.ts";
import { sumPromptTokens } from "../../src/shared/usage.ts";
import { estimateTokens } from "../../src/shared/tokens.ts";
import type { CallKind } from "../../src/shared/kinds.ts";
import type {
  JsonObject,
  Provider,
  ProviderCall,
  ProviderFailure,
  ProviderResult,
  StreamEvent,
} from "../../src/models/core/provider.ts";
import type { Recorder } from "./recorded-fetch.ts";
import type { Subject, Target } from "./subject.ts";

/** The result of a check. `raw` has the recorded traffic. */
export type Finding = {
  readonly name: string;
  readonly note: string;
  readonly problem: string | null;
  readonly raw: readonly string[];
};

type Check = {
  readonly name: string;
  /** Returns a note, or throws `Difference`. */
  readonly run: () => Promise<string>;
};

const NO_MODEL = { upstreamId: "turnpike-no-such-model" };
const PROMPT = "Answer with the single word: ready";
const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const TOOL = {
  type: "function",
  function: { name: "get_weather", description: "The weather of a city", parameters: SCHEMA },
};

/** Runs all checks that the provider's models allow, one after the other. */
export async function* runChecks(subject: Subject, recorder: Recorder): AsyncGenerator<Finding> {
  for (const { name, run } of checksOf(subject)) {
    let problem: string | null = null;
    let note = "";
    try {
      note = recorder.clean(await run());
    } catch (thrown) {
      if (!(thrown instanceof Difference)) throw thrown;
      problem = recorder.clean(thrown.message);
    }
    yield { name, note, problem, raw: await recorder.take() };
  }
}

function checksOf({ provider, stranger, chat, embeddings }: Subject): Check[] {
  const checks: Check[] = [];
  if (chat !== null) {
    const can = (ability: Target["facts"]["abilities"][number]) =>
      chat.facts.abilities.includes(ability);
    checks.push(
      { name: "chat", run: () => chatCheck(provider, chat) },
      { name: "stream", run: () => streamCheck(provider, chat) },
      ...(can("tools") ? [{ name: "tools", run: () => toolCheck(provider, chat) }] : []),
      { name: "json schema", run: () => schemaCheck(provider, chat) },
    );
  }
  if (embeddings !== null) {
    checks.push({ name: "embeddings", run: () => embeddingsCheck(provider, embeddings) });
  }
  const [kind, target] =
    chat === null ? (["embeddings", embeddings] as const) : (["chat", chat] as const);
  if (target === null) return checks;
  checks.push({ name: "no such model", run: () => modelNameCheck(provider, kind) });
  if (stranger !== null) {
    checks.push({ name: "wrong key", run: () => disabledCheck(stranger, kind, target) });
  }
  return checks;
}

async function chatCheck(provider: Provider, target: Target): Promise<string> {
  const { body, usage } = json(await ask(provider, target, { messages: [user(PROMPT)] }));
  const { content, finish } = choiceOf(body);
  expect(content.trim() !== "", `a response with text, not ${JSON.stringify(body)}`);
  expect(finish === "stop" || finish === "length", `finish_reason stop, not ${finish}`);
  return `"${content.trim().slice(0, 40)}", ${usageNote(usage, target)}`;
}

async function streamCheck(provider: Provider, target: Target): Promise<string> {
  const answer = await ask(provider, target, { messages: [user(PROMPT)] }, { stream: true });
  const events = await eventsOf(answer);
  const failure = events.find((event) => event.kind === "error")?.failure;
  expect(failure === undefined, `no error event, not ${JSON.stringify(failure)}`);
  expect(events.at(-1)?.kind === "end", "the stream to reach its end marker");
  expect(JSON.stringify(events).includes('"finish_reason":"'), "a finish_reason");
  const usages = events.filter((event) => event.kind === "usage");
  const last = usages.at(-1);
  expect(last !== undefined, "usage in the stream");
  expect(
    last.partial !== true,
    `the usage of the whole response, not a partial one: ${JSON.stringify(last)}`,
  );
  return `${events.length} events, ${usageNote(last.usage, target)}`;
}

async function toolCheck(provider: Provider, target: Target): Promise<string> {
  const messages = [user("What is the weather in Paris? Use the tool.")];
  const tools = { tools: [TOOL], tool_choice: "auto" };
  const { body } = json(await ask(provider, target, { messages, ...tools }));
  const { message, finish } = choiceOf(body);
  const calls = (message["tool_calls"] ?? []) as readonly ToolCall[];
  const [call] = calls;
  expect(call !== undefined, `a tool call, not ${JSON.stringify(message)}`);
  expect(finish === "tool_calls", `finish_reason tool_calls, not ${finish}`);
  const given = parsed(call.function.arguments);
  expect(
    typeof given?.["city"] === "string",
    `arguments with a city, not ${call.function.arguments}`,
  );
  const results = calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "21 °C" }));
  const again = await ask(provider, target, {
    messages: [...messages, message, ...results],
    ...tools,
  });
  const { content } = choiceOf(json(again).body);
  expect(content.includes("21"), `the tool's result in the response, not "${content}"`);
  return `${call.function.name}(${call.function.arguments}), then "${content.slice(0, 40)}"`;
}

async function schemaCheck(provider: Provider, target: Target): Promise<string> {
  const format = {
    type: "json_schema",
    json_schema: { name: "place", schema: SCHEMA, strict: true },
  };
  const messages = [user("Name the capital of France as JSON with the key city.")];
  const answer = await ask(provider, target, { messages, response_format: format });
  const { content } = choiceOf(json(answer).body);
  expect(typeof parsed(content)?.["city"] === "string", `JSON with a city, not "${content}"`);
  return content.slice(0, 60);
}

async function embeddingsCheck(provider: Provider, target: Target): Promise<string> {
  const input = ["the first text", "the second text"];
  const { body, usage } = json(await ask(provider, target, { input }, { kind: "embeddings" }));
  const data = body["data"] as readonly unknown[];
  expect(data.length === input.length, `${input.length} vectors, not ${data.length}`);
  const sizes = data.map((vector) => (Array.isArray(vector) ? vector.length : -1));
  expect(
    sizes.every((size) => size > 0 && size === sizes[0]),
    `vectors of one size: ${sizes.join()}`,
  );
  return `${sizes[0]} dimensions, ${usage === null ? "no usage, so it is estimated" : usageNote(usage, target)}`;
}

/**
 * Checks a request for an unknown model. A server with one model (llama.cpp) can serve it under any
 * name. Other servers must reject it.
 */
async function modelNameCheck(provider: Provider, kind: "chat" | "embeddings"): Promise<string> {
  const answer = await ask(provider, NO_MODEL, bodyFor(kind), { kind });
  if (answer.kind !== "failure") return "accepted: the server serves one model under any name";
  return disabledNote(answer.failure);
}

async function disabledCheck(
  provider: Provider,
  kind: "chat" | "embeddings",
  target: Pick<Target, "upstreamId">,
): Promise<string> {
  return disabledNote(failureOf(await ask(provider, target, bodyFor(kind), { kind })));
}

function disabledNote(failure: ProviderFailure): string {
  expect(failure.kind === "disabled", `kind disabled, not ${JSON.stringify(failure)}`);
  return `${failure.reason}: the gateway would skip the route`;
}

function bodyFor(kind: "chat" | "embeddings"): JsonObject {
  return kind === "chat" ? { messages: [user(PROMPT)] } : { input: ["a text"] };
}

/**
 * Returns a note with the reported tokens and the tokens that a hold would reserve. Throws
 * `Difference` if the provider reports no prompt tokens.
 */
function usageNote(usage: Usage | null, { facts }: Target): string {
  if (usage === null) throw new Difference("expected usage, but the response has none");
  const prompt = sumPromptTokens(usage);
  const reserve = Math.ceil(estimateTokens(PROMPT) * facts.estimateFactor) + 24;
  expect(prompt > 0, `prompt tokens above 0: ${JSON.stringify(usage)}`);
  return `${prompt} prompt tokens (a hold reserves at least ${reserve}), ${usage.output} output tokens`;
}

/** Thrown for an unexpected response. The message has the expected and the actual one. */
class Difference extends Error {}

const CAP = 300;
const TIMEOUT_MS = 60_000;

/** Calls a provider once, as the paid path does. */
function ask(
  provider: Provider,
  { upstreamId }: Pick<Target, "upstreamId">,
  body: JsonObject,
  { stream = false, kind = "chat" }: { stream?: boolean; kind?: CallKind } = {},
): Promise<ProviderResult> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return provider.send({ kind, upstreamId, body, stream, cap: CAP, signal } as ProviderCall);
}

/** Returns every event of a stream. Throws `Difference` for another response. */
async function eventsOf(answer: ProviderResult): Promise<StreamEvent[]> {
  if (answer.kind !== "stream") throw new Difference(`expected a stream, not ${summary(answer)}`);
  const events: StreamEvent[] = [];
  try {
    for (;;) {
      const batch = await answer.events.next();
      if (batch === null) return events;
      events.push(...batch);
    }
  } catch (thrown) {
    throw new Difference(`the stream ended early: ${String(thrown)}`, { cause: thrown });
  }
}

/** Returns a JSON response, or throws `Difference`. */
function json(answer: ProviderResult): Extract<ProviderResult, { kind: "json" }> {
  if (answer.kind === "json") return answer;
  throw new Difference(`expected a response, not ${summary(answer)}`);
}

/** Returns a failure, or throws `Difference`. */
function failureOf(answer: ProviderResult): ProviderFailure {
  if (answer.kind === "failure") return answer.failure;
  throw new Difference(`expected a failure, not ${summary(answer)}`);
}

function summary(answer: ProviderResult): string {
  return answer.kind === "failure" ? JSON.stringify(answer.failure) : answer.kind;
}

type ToolCall = {
  readonly id: string;
  readonly function: { name: string; arguments: string };
};

/** Returns the first choice of a completion. */
function choiceOf(body: JsonObject): {
  message: JsonObject;
  content: string;
  finish: string;
} {
  const [choice] = (body["choices"] ?? []) as readonly JsonObject[];
  const message = (choice?.["message"] ?? {}) as JsonObject;
  const content = typeof message["content"] === "string" ? message["content"] : "";
  return { message, content, finish: String(choice?.["finish_reason"]) };
}

function user(content: string): JsonObject {
  return { role: "user", content };
}

/** Parses JSON, or returns null. */
function parsed(text: string): JsonObject | null {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return null;
  }
}

/** Throws `Difference` with the expectation `what` unless `holds`. */
function expect(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Difference(`expected ${what}`);
}
