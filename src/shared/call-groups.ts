import { elapsedMs } from "./clock.ts";
import type { After } from "./timers.ts";

/** Maximum parts per call. It limits the object's transaction and the effect of a failed call. */
export const GROUPED_PARTS_MAX = 32;
const WAITING_MAX = 256;
/** Ms after which a part without a response fails. */
export const GROUPED_CALL_TIMEOUT_MS = 800;
/** Ms after which a slow call no longer blocks others. */
const STALL_MS = 100;
/** Maximum concurrent calls to an object. At low load, timers for waiting cost more than a call. */
export const CONCURRENT_CALLS_MAX = 4;
/** Minimum and maximum ms between two polls, which are a quarter of the time waited so far. */
const LOOK_MS = { least: 1, most: 20 } as const;

/**
 * The result of one part. `failed`: the whole call failed. `apart`: nothing was done, and the part
 * needs its own call.
 */
export type PartAnswer<Answer> =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "apart" }
  | { readonly kind: "failed"; readonly reason: string };

type Ask<Part, Answer> = {
  readonly part: Part;
  readonly alone: () => Promise<Answer>;
  readonly together: (parts: readonly Part[]) => Promise<readonly PartAnswer<Answer>[]>;
  readonly after: After;
};

/** A failed call. Its error is text, because a request can't use another's error object. */
type Lost = { readonly kind: "lost"; readonly reason: string; readonly overloaded: boolean };
/** The state of a waiting part. `carry`: it must make the next call for its group. */
type Turn<Answer> = PartAnswer<Answer> | Lost | { readonly kind: "carry"; readonly call: Call };
type Call = { readonly sinceMs: number };

type Waiter<Part, Answer> = {
  readonly part: Part;
  readonly sinceMs: number;
  turn: Turn<Answer> | null;
};
type Carried<Part, Answer> = {
  readonly ask: Ask<Part, Answer>;
  readonly waiter: Waiter<Part, Answer>;
  readonly call: Call;
};
type Busy = { readonly most: number; readonly underWay: Set<Call> };
type Lane<Part, Answer> = Busy & {
  readonly waiting: Set<Waiter<Part, Answer>>;
};

/**
 * Groups an isolate's calls to objects of one class. While the maximum of calls to an object runs,
 * further parts wait, and each polls with its own timer. A promise that another request resolves
 * can continue in that request's context, or never settle (workerd#2719). A part without a response
 * in time throws, and its caller retries with the same ID.
 */
export class CallGroups<Part, Answer> {
  readonly #lanes = new Map<string, Lane<Part, Answer>>();
  readonly #sideBySide: number;

  constructor(sideBySide = CONCURRENT_CALLS_MAX) {
    this.#sideBySide = sideBySide;
  }

  /** Sends a part. Throws if the call fails or times out. */
  ask(name: string, ask: Ask<Part, Answer>): Promise<Answer> {
    const lane = this.#laneOf(name);
    const { part } = ask;
    const waiter: Waiter<Part, Answer> = { part, sinceMs: elapsedMs(), turn: null };
    if (isFree(lane)) return this.#carry(name, lane, { ask, waiter, call: startCall(lane) });
    return lane.waiting.size >= WAITING_MAX ? ask.alone() : this.#wait(name, lane, { ask, waiter });
  }

  async #wait(
    name: string,
    lane: Lane<Part, Answer>,
    { ask, waiter }: Omit<Carried<Part, Answer>, "call">,
  ): Promise<Answer> {
    const turn = await waitIn(lane, waiter, ask.after);
    switch (turn.kind) {
      case "answered":
        return turn.answer;
      case "carry":
        return this.#carry(name, lane, { ask, waiter, call: turn.call });
      case "apart":
        return ask.alone();
      case "failed":
        throw new Error(turn.reason);
      case "lost":
        throw Object.assign(new Error(turn.reason), { overloaded: turn.overloaded });
    }
  }

  waiting(name: string): number {
    return this.#lanes.get(name)?.waiting.size ?? 0;
  }

  async #carry(
    name: string,
    lane: Lane<Part, Answer>,
    { ask, waiter, call }: Carried<Part, Answer>,
  ): Promise<Answer> {
    const group = lane.waiting.size === 0 ? [waiter] : takeGroup(lane, waiter);
    try {
      return await (group.length === 1 ? ask.alone() : askTogether(ask, { group, waiter }));
    } catch (error) {
      const lost = lostBy(error);
      for (const one of group) one.turn ??= lost;
      throw error;
    } finally {
      lane.underWay.delete(call);
      this.#forget(name, lane);
    }
  }

  #forget(name: string, lane: Lane<Part, Answer>): void {
    const isOver = lane.underWay.size === 0 && lane.waiting.size === 0;
    if (isOver && this.#lanes.get(name) === lane) this.#lanes.delete(name);
  }

  #laneOf(name: string): Lane<Part, Answer> {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const lane: Lane<Part, Answer> = {
      most: this.#sideBySide,
      underWay: new Set(),
      waiting: new Set(),
    };
    this.#lanes.set(name, lane);
    return lane;
  }
}

async function askTogether<Part, Answer>(
  ask: Ask<Part, Answer>,
  {
    group,
    waiter,
  }: { readonly group: Waiter<Part, Answer>[]; readonly waiter: Waiter<Part, Answer> },
): Promise<Answer> {
  const answers = await ask.together(group.map(({ part }) => part));
  for (const [i, one] of group.entries()) one.turn = answers[i] ?? UNANSWERED;
  const turn = answers[group.indexOf(waiter)] ?? UNANSWERED;
  if (turn.kind === "failed") throw new Error(turn.reason);
  return turn.kind === "apart" ? ask.alone() : turn.answer;
}

const UNANSWERED = { kind: "failed", reason: "the call of several had no answer for one" } as const;

/**
 * Reports whether another call can start. Calls slower than STALL_MS don't count, because the call
 * of a canceled request never ends.
 */
function isFree({ most, underWay }: Busy): boolean {
  if (underWay.size < most) return true;
  const stalledMs = elapsedMs() - STALL_MS;
  for (const call of underWay) if (call.sinceMs < stalledMs) underWay.delete(call);
  return underWay.size < most;
}

function startCall({ underWay }: Busy): Call {
  const call = { sinceMs: elapsedMs() };
  underWay.add(call);
  return call;
}

/**
 * Returns the parts that have waited longest, always including the one that makes the call. Removes
 * those of canceled requests.
 */
function takeGroup<Part, Answer>(
  lane: Lane<Part, Answer>,
  carrier: Waiter<Part, Answer>,
): Waiter<Part, Answer>[] {
  const nowMs = elapsedMs();
  lane.waiting.add(carrier);
  for (const waiter of lane.waiting) {
    const isLate = nowMs - waiter.sinceMs > GROUPED_CALL_TIMEOUT_MS;
    if (isLate && waiter !== carrier) lane.waiting.delete(waiter);
  }
  const waiting = [...lane.waiting];
  const group = waiting.slice(0, GROUPED_PARTS_MAX);
  if (!group.includes(carrier)) group.splice(-1, 1, carrier);
  for (const waiter of group) lane.waiting.delete(waiter);
  return group;
}

function waitIn<Part, Answer>(
  lane: Lane<Part, Answer>,
  waiter: Waiter<Part, Answer>,
  after: After,
): Promise<Turn<Answer>> {
  lane.waiting.add(waiter);
  return new Promise((resolve) => {
    const look = (): void => {
      const turn = turnOf(lane, waiter);
      if (turn === null) {
        lookLater();
        return;
      }
      if (turn.kind !== "carry") lane.waiting.delete(waiter);
      resolve(turn);
    };
    const lookLater = (): void => {
      const waitedMs = elapsedMs() - waiter.sinceMs;
      after(Math.min(LOOK_MS.most, Math.max(LOOK_MS.least, waitedMs / 4)), look);
    };
    lookLater();
  });
}

function turnOf<Part, Answer>(
  lane: Lane<Part, Answer>,
  waiter: Waiter<Part, Answer>,
): Turn<Answer> | null {
  if (waiter.turn !== null) return waiter.turn;
  if (elapsedMs() - waiter.sinceMs >= GROUPED_CALL_TIMEOUT_MS) {
    return {
      kind: "lost",
      reason: `no answer within ${GROUPED_CALL_TIMEOUT_MS} ms`,
      overloaded: false,
    };
  }
  return lane.waiting.has(waiter) && isFree(lane) ? { kind: "carry", call: startCall(lane) } : null;
}

function lostBy(error: unknown): Lost {
  const overloaded =
    typeof error === "object" &&
    error !== null &&
    "overloaded" in error &&
    error.overloaded === true;
  return { kind: "lost", reason: String(error), overloaded };
}
