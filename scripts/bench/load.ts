import { Agent } from "node:http";
import { clockMs, exchange, startOnTime } from "../exchange.ts";

export type Kind = "json" | "stream";

/**
 * A URL for completions: the provider itself ("direct"), a plain pass-through Worker ("floor"), one
 * that copies chunks ("pump"), the gateway at "home", in the other region with a global key
 * ("peer"), the compared commit ("home before"), or another gateway by name.
 */
export type Target = {
  readonly name: string;
  /** Ends in /chat/completions. */
  readonly url: string;
  /** Keys to use in turn, each up to 1000 times a minute. */
  readonly keys: readonly string[];
  /** Processes that a request keeps busy. Empty for the provider itself. */
  readonly pids: readonly number[];
  /** Headers of each request besides its key. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Formats a request. The default is a chat completion. */
  readonly ask?: (ask: Ask) => PreparedRequest;
};

/** A request. `words` is its output cap, and the number of words in a stream. */
export type Ask = {
  readonly kind: Kind;
  readonly words: number;
  /**
   * `typical`: a word every 20 ms, as models do. `steady`: every 5 ms. `slow`: every 40 ms after 50
   * ms. By default, every 2 ms.
   */
  readonly pace?: "typical" | "steady" | "slow" | undefined;
};

/** Times of the first and last byte of the body, in ms since the request started. */
export type Sample = { readonly firstByteMs: number; readonly totalMs: number };

/** A request body, and the end of a complete response to it. */
type PreparedRequest = { readonly body: string; readonly ending: string };

type Load = Ask & {
  readonly target: Target;
  readonly requests: number;
  readonly concurrency: number;
};
/** The result of a request. The status is 0 if the connection failed first. */
export type Outcome = Sample & {
  readonly status: number;
  readonly isWhole: boolean;
  /** The end of the body, or the cause of the failed connection. */
  readonly tail: string;
};
/** Timeout of a request. Requests take less than a tenth of it unless they hang. */
const PATIENCE_MS = 20_000;
const MESSAGES = [
  { role: "system", content: "You are a helpful assistant that answers in a few words." },
  { role: "user", content: "Why is the sky blue? ".repeat(4) },
];
const ENDINGS = { json: "}", stream: "data: [DONE]\n\n" } as const;

const agent = new Agent({ keepAlive: true, scheduling: "fifo" });
const nextKey = new WeakMap<Target, number>();

/** Sends requests until enough of them have complete responses. Throws for other responses. */
export async function run(load: Load): Promise<Sample[]> {
  const { target, requests, concurrency } = load;
  const outcomes = await sendInTurn(target, load, concurrency, (begun) => begun < requests);
  const failed = outcomes.find(({ status, isWhole }) => status !== 200 || !isWhole);
  if (failed === undefined) return outcomes;
  const { body } = prepare(target, load);
  throw new Error(`${target.name}: ${body}: ${failed.status}: ${failed.tail}`);
}

/** Sends up to `concurrency` requests at a time while `isMore` allows the next one. */
export async function sendInTurn(
  target: Target,
  ask: Ask,
  concurrency: number,
  isMore: (begun: number) => boolean,
): Promise<Outcome[]> {
  const asked = prepare(target, ask);
  const outcomes: Outcome[] = [];
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (isMore(begun)) {
      begun++;
      outcomes.push(await attempt(target, asked));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return outcomes;
}

/** Reverses the list in every second turn. */
export function reverseOddTurns<T>(list: readonly T[], turn: number): readonly T[] {
  return turn % 2 === 0 ? list : list.toReversed();
}

/** Formats a request for a target. */
export function prepare({ ask = chat }: Pick<Target, "ask">, asked: Ask): PreparedRequest {
  return ask(asked);
}

function chat({ kind, words, pace }: Ask): PreparedRequest {
  const model = `bench/${pace ?? "model"}`;
  const fields = { model, messages: MESSAGES, max_tokens: words, stream: kind === "stream" };
  return { body: JSON.stringify(fields), ending: ENDINGS[kind] };
}

/** Requests a completion with the target's next key. Returns the result of any kind. */
export async function attempt(target: Target, { body, ending }: PreparedRequest): Promise<Outcome> {
  const turn = nextKey.get(target) ?? 0;
  nextKey.set(target, turn + 1);
  const key = target.keys[turn % target.keys.length] ?? "none";
  const { url, headers } = target;
  const came = await exchange({ url, key, headers, body, agent, patienceMs: PATIENCE_MS });
  const { end, status, sentMs, text, why } = came;
  return {
    status: end === "whole" ? (status ?? 0) : 0,
    firstByteMs: (came.firstByteMs ?? sentMs) - sentMs,
    totalMs: came.endedMs - sentMs,
    isWhole: text.endsWith(ending),
    tail: end === "whole" ? text.slice(-500) : why,
  };
}

/** Closes persistent connections, so that the process can end. */
export function closeConnections(): void {
  agent.destroy();
}

type RateLoad = {
  readonly target: Target;
  readonly ask: Ask;
  /** Evenly spaced requests per second, regardless of earlier responses. */
  readonly rate: number;
  readonly seconds: number;
};
/**
 * A response. Its times start when the request was due. `atMs` is the end since the start of the
 * load. The status is 0 if nothing responded. `isOk` means a complete 200.
 */
export type TimedResponse = {
  readonly firstByteMs: number;
  readonly ms: number;
  readonly atMs: number;
  readonly status: number;
  readonly isOk: boolean;
};
/**
 * Sends requests at a constant rate. Returns all responses in the order in which the requests were
 * due. Times start when a request is due, so they include queues in this process.
 */
export async function sendAtRate({
  target,
  ask,
  rate,
  seconds,
}: RateLoad): Promise<TimedResponse[]> {
  const asked = prepare(target, ask);
  const startedMs = clockMs();
  const answered = async (dueMs: number): Promise<TimedResponse> => {
    const lateMs = clockMs() - startedMs - dueMs;
    const { status, isWhole, firstByteMs } = await attempt(target, asked);
    const atMs = clockMs() - startedMs;
    const isOk = status === 200 && isWhole;
    return { firstByteMs: lateMs + firstByteMs, ms: atMs - dueMs, atMs, status, isOk };
  };
  const all = Math.max(1, Math.round(rate * seconds));
  const plan = Array.from({ length: all }, (_, i) => ({ atMs: (i * 1000) / rate }));
  const sent: Promise<TimedResponse>[] = [];
  await startOnTime(plan, ({ atMs }) => sent.push(answered(atMs)), { startedMs });
  return Promise.all(sent);
}
