import { Agent } from "node:http";
import { clockMs, exchange, whenDue } from "../exchange.ts";
import { quantile } from "../quantile.ts";

export type Kind = "json" | "stream";

/**
 * A place for completions: the upstream mock ("direct"), a bare pass-through Worker ("floor"), one that pumps
 * ("pump"), the gateway at "home", in the other region with a global key ("peer"), the compared commit ("home
 * before"), or another gateway by name.
 */
export type Target = {
  readonly name: string;
  /** Ends in /chat/completions. */
  readonly url: string;
  /** Used in turn; each may be used 1000 times a minute. */
  readonly keys: readonly string[];
  /** The processes that a request keeps busy; none for the upstream itself. */
  readonly pids: readonly number[];
  /** Sent with each request, besides its key. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Writes a request; by default a chat completion. */
  readonly ask?: (ask: Ask) => PreparedRequest;
};

/** A request. `words` is the output cap, which is also a stream's word count. */
export type Ask = {
  readonly kind: Kind;
  readonly words: number;
  /** A word every 20 ms, as models write, every 5 ms, or after 50 ms every 40, instead of every 2 ms. */
  readonly pace?: "typical" | "steady" | "slow" | undefined;
};

/** The times of the body's first and last byte, in ms since the start of the request. */
export type Sample = { readonly firstByteMs: number; readonly totalMs: number };

/** A request ready to be sent any number of times, and what its whole answer ends with. */
type PreparedRequest = { readonly body: string; readonly ending: string };

type Load = Ask & {
  readonly target: Target;
  readonly requests: number;
  readonly concurrency: number;
};
/** The end of a request; status 0 if the connection ended before the answer. */
export type Outcome = Sample & {
  readonly status: number;
  readonly isWhole: boolean;
  /** The end of the body, or what broke the connection. */
  readonly tail: string;
};
/** A request that takes longer is given up: nothing here takes a tenth of it unless it hangs. */
const PATIENCE_MS = 20_000;
const MESSAGES = [
  { role: "system", content: "You are a helpful assistant that answers in a few words." },
  { role: "user", content: "Why is the sky blue? ".repeat(4) },
];
const ENDINGS = { json: "}", stream: "data: [DONE]\n\n" } as const;

const agent = new Agent({ keepAlive: true, scheduling: "fifo" });
const nextKey = new WeakMap<Target, number>();

/**
 * Sends requests, `concurrency` at a time, until enough are answered completely. Throws for other answers.
 */
export async function run(load: Load): Promise<Sample[]> {
  const { target, requests, concurrency } = load;
  const asked = prepare(target, load);
  const samples: Sample[] = [];
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun < requests) {
      begun++;
      const outcome = await attempt(target, asked);
      if (outcome.status !== 200 || !outcome.isWhole) {
        throw new Error(`${target.name}: ${asked.body}: ${outcome.status}: ${outcome.tail}`);
      }
      samples.push(outcome);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return samples;
}

/** Reverses the list every second time. */
export function turned<T>(list: readonly T[], turn: number): readonly T[] {
  return turn % 2 === 0 ? list : list.toReversed();
}

/** A request as a target takes it. */
export function prepare({ ask = chat }: Pick<Target, "ask">, asked: Ask): PreparedRequest {
  return ask(asked);
}

function chat({ kind, words, pace }: Ask): PreparedRequest {
  const model = `bench/${pace ?? "model"}`;
  const fields = { model, messages: MESSAGES, max_tokens: words, stream: kind === "stream" };
  return { body: JSON.stringify(fields), ending: ENDINGS[kind] };
}

/** Requests a completion with the target's next key and returns any outcome. */
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

/** Closes the kept connections, so that the process can end. */
export function closeConnections(): void {
  agent.destroy();
}

type Offer = {
  readonly target: Target;
  readonly ask: Ask;
  /** Requests per second, evenly spaced, regardless of earlier ones. */
  readonly rate: number;
  readonly seconds: number;
  /** How long after the step's end an answer counts. */
  readonly patienceMs: number;
};
/** An answer: how long after it was due its first byte and its last came, when that was, its status (0 for none), whether it was a whole 200. */
export type Answered = {
  readonly firstByteMs: number;
  readonly ms: number;
  readonly atMs: number;
  readonly status: number;
  readonly isOk: boolean;
};
/** The result of an open loop at one rate: requests per second, and times in ms since each was due. */
export type Step = {
  readonly offered: number;
  /** Answered in full, with 200, by the end of the step and the patience after it. */
  readonly achieved: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
};

/**
 * Sends a rate for some seconds and waits for every answer. Times start when a request was due, so that
 * queues count, also in this process. Only a whole 200 counts as achieved.
 */
export async function offerRate(offered: Offer): Promise<Step> {
  const { rate, seconds, patienceMs } = offered;
  const answers = await answersTo(offered);
  const good = answers.filter(({ isOk }) => isOk);
  const inTime = good.filter(({ atMs }) => atMs <= seconds * 1000 + patienceMs);
  const times = good.map(({ ms }) => ms);
  return {
    offered: rate,
    achieved: (rate * inTime.length) / answers.length,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
  };
}

/** Every answer to what is offered, in the order in which they were due. */
export async function answersTo({ target, ask, rate, seconds }: Offer): Promise<Answered[]> {
  const asked = prepare(target, ask);
  const startedMs = clockMs();
  const answered = async (dueMs: number): Promise<Answered> => {
    const lateMs = clockMs() - startedMs - dueMs;
    const { status, isWhole, firstByteMs } = await attempt(target, asked);
    const atMs = clockMs() - startedMs;
    const isOk = status === 200 && isWhole;
    return { firstByteMs: lateMs + firstByteMs, ms: atMs - dueMs, atMs, status, isOk };
  };
  const all = Math.max(1, Math.round(rate * seconds));
  const plan = Array.from({ length: all }, (_, i) => ({ atMs: (i * 1000) / rate }));
  const sent: Promise<Answered>[] = [];
  await whenDue(plan, ({ atMs }) => sent.push(answered(atMs)), { startedMs });
  return Promise.all(sent);
}
