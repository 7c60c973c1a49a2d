import { elapsedMs } from "./clock.ts";
import type { TimerFunction } from "./timers.ts";

/** Maximum number of calls that a grouped call combines into one transaction. */
export const GROUPED_PARTS_MAX = 32;
const WAITING_PARTS_MAX = 256;
export const GROUPED_CALL_TIMEOUT_MS = 800;
/** Age (ms) at which a running call no longer blocks other calls. */
const STALL_MS = 100;
/** Maximum concurrent calls to an object. Further calls are grouped. */
export const CONCURRENT_CALLS_MAX = 4;
const POLL_MS = { min: 1, max: 20 } as const;

/**
 * The result of one combined call. `apart`: the object did nothing, and the call must be repeated
 * alone.
 */
export type GroupedPartResult<Answer> =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "apart" }
  | { readonly kind: "failed"; readonly reason: string };

type GroupedCall<Part, Answer> = {
  readonly part: Part;
  readonly callAlone: () => Promise<Answer>;
  readonly callTogether: (parts: readonly Part[]) => Promise<readonly GroupedPartResult<Answer>[]>;
  readonly after: TimerFunction;
};

/** A failed call. The error is text, because Workers requests can't share error objects. */
type FailedCall = { readonly kind: "lost"; readonly reason: string; readonly overloaded: boolean };
/**
 * The state of a waiting part. `carry`: the part's request must make the next call for the group.
 */
type PartState<Answer> =
  | GroupedPartResult<Answer>
  | FailedCall
  | { readonly kind: "carry"; readonly call: RunningCall };
type RunningCall = { readonly sinceMs: number };

type WaitingPart<Part, Answer> = {
  readonly part: Part;
  readonly sinceMs: number;
  state: PartState<Answer> | null;
};
type CallMaker<Part, Answer> = {
  readonly ask: GroupedCall<Part, Answer>;
  readonly waiter: WaitingPart<Part, Answer>;
  readonly call: RunningCall;
};
type RunningCalls = { readonly callsMax: number; readonly runningCalls: Set<RunningCall> };
type ObjectQueue<Part, Answer> = RunningCalls & {
  readonly waiting: Set<WaitingPart<Part, Answer>>;
};

/**
 * Combines an isolate's calls to an object while too many others are running. Each waiting call
 * polls with its own timer, because another request's promise may never settle (workerd#2719).
 */
export class CallGroups<Part, Answer> {
  readonly #queueByName = new Map<string, ObjectQueue<Part, Answer>>();
  readonly #callsMax: number;

  constructor(callsMax = CONCURRENT_CALLS_MAX) {
    this.#callsMax = callsMax;
  }

  /**
   * Sends a part to the object `name`. Throws if the call fails or times out. Retries need the same
   * ID.
   */
  callPart(name: string, ask: GroupedCall<Part, Answer>): Promise<Answer> {
    const queue = this.#queueOf(name);
    const { part } = ask;
    const waiter: WaitingPart<Part, Answer> = { part, sinceMs: elapsedMs(), state: null };
    if (isFree(queue)) return this.#makeCall(name, queue, { ask, waiter, call: startCall(queue) });
    return queue.waiting.size >= WAITING_PARTS_MAX
      ? ask.callAlone()
      : this.#wait(name, queue, { ask, waiter });
  }

  async #wait(
    name: string,
    queue: ObjectQueue<Part, Answer>,
    { ask, waiter }: Omit<CallMaker<Part, Answer>, "call">,
  ): Promise<Answer> {
    const state = await waitInQueue(queue, waiter, ask.after);
    switch (state.kind) {
      case "answered":
        return state.answer;
      case "carry":
        return this.#makeCall(name, queue, { ask, waiter, call: state.call });
      case "apart":
        return ask.callAlone();
      case "failed":
        throw new Error(state.reason);
      case "lost":
        throw Object.assign(new Error(state.reason), { overloaded: state.overloaded });
    }
  }

  async #makeCall(
    name: string,
    queue: ObjectQueue<Part, Answer>,
    { ask, waiter, call }: CallMaker<Part, Answer>,
  ): Promise<Answer> {
    const group = queue.waiting.size === 0 ? [waiter] : takeGroup(queue, waiter);
    try {
      return await (group.length === 1 ? ask.callAlone() : askTogether(ask, { group, waiter }));
    } catch (error) {
      const failure = failedCall(error);
      for (const one of group) one.state ??= failure;
      throw error;
    } finally {
      queue.runningCalls.delete(call);
      this.#deleteIdleQueue(name, queue);
    }
  }

  #deleteIdleQueue(name: string, queue: ObjectQueue<Part, Answer>): void {
    const isIdle = queue.runningCalls.size === 0 && queue.waiting.size === 0;
    if (isIdle && this.#queueByName.get(name) === queue) this.#queueByName.delete(name);
  }

  #queueOf(name: string): ObjectQueue<Part, Answer> {
    const known = this.#queueByName.get(name);
    if (known !== undefined) return known;
    const queue: ObjectQueue<Part, Answer> = {
      callsMax: this.#callsMax,
      runningCalls: new Set(),
      waiting: new Set(),
    };
    this.#queueByName.set(name, queue);
    return queue;
  }
}

async function askTogether<Part, Answer>(
  ask: GroupedCall<Part, Answer>,
  {
    group,
    waiter,
  }: { readonly group: WaitingPart<Part, Answer>[]; readonly waiter: WaitingPart<Part, Answer> },
): Promise<Answer> {
  const answers = await ask.callTogether(group.map(({ part }) => part));
  for (const [i, one] of group.entries()) one.state = answers[i] ?? UNANSWERED;
  const state = answers[group.indexOf(waiter)] ?? UNANSWERED;
  if (state.kind === "failed") throw new Error(state.reason);
  return state.kind === "apart" ? ask.callAlone() : state.answer;
}

const UNANSWERED = { kind: "failed", reason: "the call of several had no answer for one" } as const;

/**
 * Reports whether another call can start. Calls slower than STALL_MS don't count, because a
 * canceled request's call never ends.
 */
function isFree({ callsMax, runningCalls }: RunningCalls): boolean {
  if (runningCalls.size < callsMax) return true;
  const stalledMs = elapsedMs() - STALL_MS;
  for (const call of runningCalls) if (call.sinceMs < stalledMs) runningCalls.delete(call);
  return runningCalls.size < callsMax;
}

function startCall({ runningCalls }: RunningCalls): RunningCall {
  const call = { sinceMs: elapsedMs() };
  runningCalls.add(call);
  return call;
}

/**
 * Removes and returns the next call's parts: `callMaker` and the oldest waiting ones. Drops the
 * parts of canceled requests.
 */
function takeGroup<Part, Answer>(
  queue: ObjectQueue<Part, Answer>,
  callMaker: WaitingPart<Part, Answer>,
): WaitingPart<Part, Answer>[] {
  const nowMs = elapsedMs();
  queue.waiting.add(callMaker);
  for (const waiter of queue.waiting) {
    const isLate = nowMs - waiter.sinceMs > GROUPED_CALL_TIMEOUT_MS;
    if (isLate && waiter !== callMaker) queue.waiting.delete(waiter);
  }
  const waiting = [...queue.waiting];
  const group = waiting.slice(0, GROUPED_PARTS_MAX);
  if (!group.includes(callMaker)) group.splice(-1, 1, callMaker);
  for (const waiter of group) queue.waiting.delete(waiter);
  return group;
}

function waitInQueue<Part, Answer>(
  queue: ObjectQueue<Part, Answer>,
  waiter: WaitingPart<Part, Answer>,
  after: TimerFunction,
): Promise<PartState<Answer>> {
  queue.waiting.add(waiter);
  return new Promise((resolve) => {
    const poll = (): void => {
      const state = nextState(queue, waiter);
      if (state === null) {
        pollLater();
        return;
      }
      if (state.kind !== "carry") queue.waiting.delete(waiter);
      resolve(state);
    };
    const pollLater = (): void => {
      const waitedMs = elapsedMs() - waiter.sinceMs;
      after(Math.min(POLL_MS.max, Math.max(POLL_MS.min, waitedMs / 4)), poll);
    };
    pollLater();
  });
}

function nextState<Part, Answer>(
  queue: ObjectQueue<Part, Answer>,
  waiter: WaitingPart<Part, Answer>,
): PartState<Answer> | null {
  if (waiter.state !== null) return waiter.state;
  if (elapsedMs() - waiter.sinceMs >= GROUPED_CALL_TIMEOUT_MS) {
    return {
      kind: "lost",
      reason: `no answer within ${GROUPED_CALL_TIMEOUT_MS} ms`,
      overloaded: false,
    };
  }
  return queue.waiting.has(waiter) && isFree(queue)
    ? { kind: "carry", call: startCall(queue) }
    : null;
}

function failedCall(error: unknown): FailedCall {
  const overloaded =
    typeof error === "object" &&
    error !== null &&
    "overloaded" in error &&
    error.overloaded === true;
  return { kind: "lost", reason: String(error), overloaded };
}
