import type { CoreRequest } from "../core/kinds.ts";
import type { After, StopSignal } from "../../shared/timers.ts";
import type {
  Customer,
  EventStream,
  NativeBody,
  Provider,
  ProviderResult,
  ProviderCall,
  ProviderFailure,
  StreamEvent,
} from "../core/provider.ts";
import { sendPromptsSeparately } from "../core/separate-prompts.ts";
import { withUsageIn } from "../core/failed-usage.ts";
import { afterTimeout } from "../../shared/timers.ts";

/** One way to run the request; `cap` is the output cap that the grant pays for there, per choice. */
export type Candidate = {
  readonly provider: Provider;
  readonly upstreamId: string;
  readonly cap: number | null;
  /** The request in this route's own wire, where it and the client speak it. */
  readonly native?: NativeBody | undefined;
};

/** What is asked of whichever route answers. */
export type AttemptRequest = CoreRequest & {
  readonly stream: boolean;
  readonly customer?: Customer;
  readonly paceMs?: number;
  readonly room?: (bytes: number) => boolean;
};

/** What bounds one attempt. */
export type AttemptOptions = {
  /** The run's end: nothing is attempted after it, and a stream ends with it. */
  readonly signal: StopSignal;
  /** To the response's headers; to the whole body where it is JSON. Downloads for the client do not count. */
  readonly headersMs: number;
  /** From the headers to the first event of a stream. */
  readonly firstMs: number;
  /** A stream without an event for so long is handed on as it is, so that its client gets headers and comments. */
  readonly quietMs?: number;
  /** The run's timers; a platform timer each unless given. */
  readonly after?: After;
  /** Told when the request goes out; not any more once the attempt was given up. */
  readonly onDispatch?: () => void;
  /** As in `ProviderCall`. */
  readonly onDropped?: (fields: readonly string[]) => void;
};

/**
 * One attempt at one route: an answer whose stream has shown its first events, or a failure. Whatever
 * is given up (by a timer, the run's end, an error as first event) has its connection ended.
 */
export async function attempt(
  candidate: Candidate,
  request: AttemptRequest,
  options: AttemptOptions,
): Promise<ProviderResult> {
  const controller = endingWith(options.signal);
  const { signal } = controller;
  const { provider } = candidate;
  const limit = new TimeLimit(options.headersMs, options);
  const send = (call: ProviderCall): Promise<ProviderResult> =>
    call.kind === "chat" && call.apart
      ? sendPromptsSeparately(provider, call)
      : provider.send(call);
  const told = {
    signal,
    onDropped: options.onDropped,
    onDispatch: () => {
      limit.resume();
      if (!signal.aborted) options.onDispatch?.();
    },
    onDownload: () => {
      limit.pause();
    },
  };
  const sent = send(callOf(candidate, request, told));
  const answer = await limit.of(sent);
  if (answer === null) {
    controller.abort();
    sent.then(letGo).catch(() => undefined); // it may still answer; then nobody listens
    return failed("timeout");
  }
  if (answer.kind !== "stream") return answer;
  const started = await firstEvents(answer.events, options);
  if (started.kind !== "failure") return started;
  answer.events.cancel();
  controller.abort();
  return started;
}

function callOf(
  { upstreamId, cap, native }: Candidate,
  request: AttemptRequest,
  told: Pick<ProviderCall, "signal" | "onDropped" | "onDispatch" | "onDownload">,
): ProviderCall {
  if (request.kind !== "chat") return { ...request, ...told, upstreamId, stream: false };
  if (cap === null) throw new Error("a chat is sent with a cap");
  return { ...request, ...told, upstreamId, cap, native };
}

/** Aborted with the run. The run keeps what listens to its end: nothing here but the controller, not the request. */
function endingWith(runEnd: StopSignal): AbortController {
  const controller = new AbortController();
  const end = (): void => {
    controller.abort();
  };
  if (runEnd.aborted) end();
  else runEnd.addEventListener("abort", end);
  return controller;
}

/**
 * Waits for the first batch with events in it: comments show life but promise nothing. After `quietMs` the stream is
 * handed on all the same, and no other route is asked.
 */
async function firstEvents(events: EventStream, options: AttemptOptions): Promise<ProviderResult> {
  const { firstMs, quietMs = firstMs, signal } = options;
  const first = firstBatch(events);
  const batch = await new TimeLimit(Math.min(firstMs, quietMs), options).of(first);
  if (batch === null) {
    if (quietMs >= firstMs || signal.aborted) return failed("timeout");
    return { kind: "stream", events: startingWith(first.then(unbroken), events), isLate: true };
  }
  if (batch === BROKEN) return failed("connection");
  const error = batch.find((event) => event.kind === "error");
  if (error !== undefined) return { kind: "failure", failure: withUsageIn(error.failure, batch) };
  if (batch.every(({ kind }) => kind === "end" || kind === "usage")) return failed("empty_stream");
  return { kind: "stream", events: startingWith(Promise.resolve(batch), events) };
}

/** A late first batch as its stream gives it: null at the end of file. Throws for a broken connection. */
function unbroken(batch: readonly StreamEvent[]): readonly StreamEvent[] | null {
  if (batch === BROKEN) throw new Error("the connection broke");
  return batch.length === 0 ? null : batch;
}

/** In place of the first events, of a connection that broke before them. */
const BROKEN: readonly StreamEvent[] = [];

/**
 * Everything up to the first batch with more than usage in it, as one; what there was at the end of the
 * file. Usage alone promises no answer: an overload may follow it.
 */
async function firstBatch(events: EventStream): Promise<readonly StreamEvent[]> {
  const first: StreamEvent[] = [];
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- a stream is read in order
    const batch = await events.next().catch(() => BROKEN);
    if (batch === BROKEN) return BROKEN;
    if (batch === null) return first;
    first.push(...batch);
    if (batch.some((event) => event.kind !== "usage")) return first;
  }
}

/** The stream again, its first batch included. */
function startingWith(first: ReturnType<EventStream["next"]>, events: EventStream): EventStream {
  first.catch(() => undefined); // whoever reads it is told
  let isFirst = true;
  return {
    next() {
      if (!isFirst) return events.next();
      isFirst = false;
      return first;
    },
    cancel: () => events.cancel(),
  };
}

function letGo(answer: ProviderResult): void {
  if (answer.kind === "stream") answer.events.cancel();
}

function failed(reason: string): ProviderResult {
  const failure: ProviderFailure = { kind: "retry", reason };
  return { kind: "failure", failure };
}

/** What ends work early: its time, by these timers, or the signal. */
type Ends = { readonly signal: StopSignal; readonly after?: After };

/** The time that one piece of work may take; it can stand still, and begins anew after that. */
class TimeLimit {
  readonly #ms: number;
  readonly #ends: Ends;
  #cancel: (() => void) | null = null;
  /** Ends the work that is under way. */
  #giveUp: (() => void) | null = null;
  #isPaused = false;

  constructor(ms: number, ends: Ends) {
    this.#ms = ms;
    this.#ends = ends;
  }

  /** The time stands still, also before the work is given. */
  pause(): void {
    this.#isPaused = true;
    this.#stop();
  }

  /** After a pause the whole time begins; without one nothing happens. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#start();
  }

  /** The work's value, or null when its time passes or the signal fires first. Leaves no timer behind. */
  of<T>(work: Promise<T>): Promise<T | null> {
    const { signal } = this.#ends;
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        this.#giveUp = null;
        this.#stop();
        signal.removeEventListener("abort", giveUp);
      };
      const giveUp = (): void => {
        settle();
        resolve(null);
      };
      this.#giveUp = giveUp;
      signal.addEventListener("abort", giveUp);
      if (!this.#isPaused) this.#start();
      if (signal.aborted) giveUp();
      work.then(resolve, reject).finally(settle);
    });
  }

  #start(): void {
    const { after = afterTimeout } = this.#ends;
    if (this.#giveUp !== null) this.#cancel = after(this.#ms, this.#giveUp);
  }

  #stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}
