import type { Kind } from "../../src/shared/kinds.ts";
import type {
  JsonObject,
  Provider,
  ProviderResult,
  ProviderCall,
  ProviderFailure,
  StreamEvent,
} from "../../src/models/core/provider.ts";
import type { Target } from "./subject.ts";

/** Thrown for an unexpected response. The message has the expected and the actual one. */
export class Difference extends Error {}

const CAP = 300;
const TIMEOUT_MS = 60_000;

/** Calls a provider once, as the paid path does. */
export function ask(
  provider: Provider,
  { upstreamId }: Pick<Target, "upstreamId">,
  body: JsonObject,
  { stream = false, kind = "chat" }: { stream?: boolean; kind?: Kind } = {},
): Promise<ProviderResult> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return provider.send({ kind, upstreamId, body, stream, cap: CAP, signal } as ProviderCall);
}

/** Returns every event of a stream. Throws `Difference` for another response. */
export async function eventsOf(answer: ProviderResult): Promise<StreamEvent[]> {
  if (answer.kind !== "stream") throw new Difference(`expected a stream, not ${summary(answer)}`);
  const events: StreamEvent[] = [];
  try {
    for (;;) {
      const batch = await answer.events.next();
      if (batch === null) return events;
      events.push(...batch);
    }
  } catch (thrown) {
    throw new Difference(`the stream broke off: ${String(thrown)}`, { cause: thrown });
  }
}

/** Returns a JSON response, or throws `Difference`. */
export function json(answer: ProviderResult): Extract<ProviderResult, { kind: "json" }> {
  if (answer.kind === "json") return answer;
  throw new Difference(`expected an answer, not ${summary(answer)}`);
}

/** Returns a failure, or throws `Difference`. */
export function failureOf(answer: ProviderResult): ProviderFailure {
  if (answer.kind === "failure") return answer.failure;
  throw new Difference(`expected a failure, not ${summary(answer)}`);
}

function summary(answer: ProviderResult): string {
  return answer.kind === "failure" ? JSON.stringify(answer.failure) : answer.kind;
}

export type ToolCall = {
  readonly id: string;
  readonly function: { name: string; arguments: string };
};

/** Returns the first choice of a completion. */
export function choiceOf(body: JsonObject): {
  message: JsonObject;
  content: string;
  finish: string;
} {
  const [choice] = (body["choices"] ?? []) as readonly JsonObject[];
  const message = (choice?.["message"] ?? {}) as JsonObject;
  const content = typeof message["content"] === "string" ? message["content"] : "";
  return { message, content, finish: String(choice?.["finish_reason"]) };
}

export function user(content: string): JsonObject {
  return { role: "user", content };
}

/** Parses JSON, or returns null. */
export function parsed(text: string): JsonObject | null {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return null;
  }
}

/** Throws `Difference` with the expectation `what` unless `holds`. */
export function expect(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Difference(`expected ${what}`);
}
