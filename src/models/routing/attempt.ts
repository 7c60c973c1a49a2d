import type { CoreRequest } from "../core/kinds.ts";
import type { StopSignal, TimerFunction } from "../../shared/timers.ts";
import type {
  Customer,
  EventStream,
  NativeBody,
  Provider,
  ProviderResult,
  ProviderCall,
  StreamEvent,
} from "../core/provider.ts";
import { sendPromptsSeparately } from "../core/separate-prompts.ts";
import { addEventUsageToFailure, createRetryableFailure } from "../core/frame-reader.ts";
import { toFailureResult } from "../core/http-provider.ts";
import { afterTimeout } from "../../shared/timers.ts";

export type AttemptCandidate = {
  readonly provider: Provider;
  readonly upstreamId: string;
  readonly model?: string;
  readonly cap: number | null;
  readonly native?: NativeBody | undefined;
};

export type AttemptRequest = CoreRequest & {
  readonly stream: boolean;
  readonly customer?: Customer;
  readonly paceMs?: number;
  readonly room?: (bytes: number) => boolean;
};

export type AttemptOptions = {
  /** A signal that ends streams and prevents further attempts. Fires when the run ends. */
  readonly signal: StopSignal;
  /**
   * Maximum ms until the response headers, or until the end of a JSON response. The time for
   * downloads of the client's images doesn't count.
   */
  readonly headersMs: number;
  /** Maximum ms from the headers to a stream's first event. */
  readonly firstMs: number;
  /** Ms to wait for the first event. Then the client gets headers and keep-alive comments. */
  readonly quietMs?: number;
  readonly after?: TimerFunction;
  readonly onDispatch?: () => void;
  readonly onDropped?: (fields: readonly string[]) => void;
};

/** Calls one route. Returns a failure, a response, or a stream after its first events. */
export async function attemptRoute(
  candidate: AttemptCandidate,
  request: AttemptRequest,
  options: AttemptOptions,
): Promise<ProviderResult> {
  const controller = abortAtRunEnd(options.signal);
  const { signal } = controller;
  const { provider } = candidate;
  const limit = new TimeLimit(options.headersMs, options);
  const send = (call: ProviderCall): Promise<ProviderResult> =>
    call.kind === "chat" && call.apart
      ? sendPromptsSeparately(provider, call)
      : provider.send(call);
  const callbacks = {
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
  const sent = send(providerCallOf(candidate, request, callbacks));
  const answer = await limit.waitFor(sent);
  if (answer === null) {
    controller.abort();
    sent.then(cancelStream).catch(() => undefined); // A late response is discarded.
    return TIMEOUT_RESULT;
  }
  if (answer.kind !== "stream") return answer;
  const started = await waitForFirstEvents(answer.events, options);
  if (started.kind !== "failure") return started;
  answer.events.cancel();
  controller.abort();
  return started;
}

function providerCallOf(
  { upstreamId, cap, native }: AttemptCandidate,
  request: AttemptRequest,
  reported: Pick<ProviderCall, "signal" | "onDropped" | "onDispatch" | "onDownload">,
): ProviderCall {
  if (request.kind !== "chat") return { ...request, ...reported, upstreamId };
  if (cap === null) throw new Error("a chat is sent with a cap");
  return { ...request, ...reported, upstreamId, cap, native };
}

/**
 * Returns a controller that aborts when the run ends. The listener references only the controller,
 * to save memory.
 */
function abortAtRunEnd(runEnd: StopSignal): AbortController {
  const controller = new AbortController();
  const end = (): void => {
    controller.abort();
  };
  if (runEnd.aborted) end();
  else runEnd.addEventListener("abort", end);
  return controller;
}

/**
 * Waits for the first batch of events. Ignores comments, because a failure can follow them. After
 * `quietMs`, returns the silent stream, so that no other route is tried.
 */
async function waitForFirstEvents(
  events: EventStream,
  options: AttemptOptions,
): Promise<ProviderResult> {
  const { firstMs, quietMs = firstMs, signal } = options;
  const first = readFirstBatch(events);
  const batch = await new TimeLimit(Math.min(firstMs, quietMs), options).waitFor(first);
  if (batch === null) {
    if (quietMs >= firstMs || signal.aborted) return TIMEOUT_RESULT;
    const lateMs = firstMs - quietMs;
    return { kind: "stream", events: prependBatch(first.then(throwIfBroken), events), lateMs };
  }
  if (batch === CONNECTION_BROKEN) return toFailureResult(createRetryableFailure("connection"));
  const error = batch.find((event) => event.kind === "error");
  if (error !== undefined) {
    return toFailureResult(addEventUsageToFailure(error.failure, batch));
  }
  if (batch.every(({ kind }) => kind === "end" || kind === "usage")) {
    return toFailureResult(addEventUsageToFailure(EMPTY_STREAM, batch));
  }
  return { kind: "stream", events: prependBatch(Promise.resolve(batch), events) };
}

function throwIfBroken(batch: readonly StreamEvent[]): readonly StreamEvent[] | null {
  if (batch === CONNECTION_BROKEN) throw new Error("the connection broke");
  return batch.length === 0 ? null : batch;
}

const EMPTY_STREAM = createRetryableFailure("empty_stream");
const CONNECTION_BROKEN: readonly StreamEvent[] = [];

/** Reads until a batch has other events than usage, because an overload error can follow usage. */
async function readFirstBatch(events: EventStream): Promise<readonly StreamEvent[]> {
  const first: StreamEvent[] = [];
  for (;;) {
    const batch = await events.next().catch(() => CONNECTION_BROKEN);
    if (batch === CONNECTION_BROKEN) return CONNECTION_BROKEN;
    if (batch === null) return first;
    first.push(...batch);
    if (batch.some((event) => event.kind !== "usage")) return first;
  }
}

function prependBatch(first: ReturnType<EventStream["next"]>, events: EventStream): EventStream {
  first.catch(() => undefined); // Prevents an unhandled rejection. `next` still rejects.
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

function cancelStream(answer: ProviderResult): void {
  if (answer.kind === "stream") answer.events.cancel();
}

export const TIMEOUT_FAILURE_REASON = "timeout";
const TIMEOUT_RESULT = toFailureResult(createRetryableFailure(TIMEOUT_FAILURE_REASON));

type LimitEnds = { readonly signal: StopSignal; readonly after?: TimerFunction };

class TimeLimit {
  readonly #ms: number;
  readonly #ends: LimitEnds;
  #cancel: (() => void) | null = null;
  #giveUp: (() => void) | null = null;
  #isPaused = false;

  constructor(ms: number, ends: LimitEnds) {
    this.#ms = ms;
    this.#ends = ends;
  }

  pause(): void {
    this.#isPaused = true;
    this.#stop();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#start();
  }

  waitFor<T>(work: Promise<T>): Promise<T | null> {
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
