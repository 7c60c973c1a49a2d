import { elapsedMs } from "./clock.ts";
import type { After } from "./timers.ts";

/** Maximum parts per call. It bounds the object's transaction and the loss of one failure. */
export const PARTS_MAX = 32;
const WAITING_MAX = 256;
/** Ms after which a part without a response gives up. */
export const PATIENCE_MS = 800;
/** Ms after which a slow call stops blocking the next one. */
const STALL_MS = 100;
/**
 * Concurrent calls to an object before parts wait. Waiting costs timers, which exceed a call's cost at low
 * load.
 */
export const SIDE_BY_SIDE = 4;
/** A waiting part polls after a quarter of its waiting time, within these bounds (ms). */
const LOOK_MS = { least: 1, most: 20 } as const;

/**
 * The result of one part: its response, or the failure of the whole call. `apart`: call it alone, nothing was
 * done.
 */
export type PartAnswer<Answer> =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "apart" }
  | { readonly kind: "failed"; readonly reason: string };

/** One part: how to call it alone and in a group, from its own request. */
type Ask<Part, Answer> = {
  readonly part: Part;
  readonly alone: () => Promise<Answer>;
  readonly together: (parts: readonly Part[]) => Promise<readonly PartAnswer<Answer>[]>;
  readonly after: After;
};

/** A call's failure as text, because an error object belongs to its request. */
type Lost = { readonly kind: "lost"; readonly reason: string; readonly overloaded: boolean };
/** `carry`: no call is running, so this part makes the call for its group. */
type Turn<Answer> = PartAnswer<Answer> | Lost | { readonly kind: "carry"; readonly call: Call };
/** A running call and its start (isolate clock, ms). */
type Call = { readonly sinceMs: number };

type Waiter<Part, Answer> = {
  readonly part: Part;
  readonly sinceMs: number;
  turn: Turn<Answer> | null;
};
type Carried<Part, Answer> = {
  readonly asked: Ask<Part, Answer>;
  readonly waiter: Waiter<Part, Answer>;
  readonly call: Call;
};
type Busy = { readonly most: number; readonly underWay: Set<Call> };
type Lane<Part, Answer> = Busy & {
  readonly waiting: Set<Waiter<Part, Answer>>;
};

/**
 * Groups the calls of one isolate to objects of one class. While `SIDE_BY_SIDE` calls to an object run,
 * further parts wait and go together in the next call, in order. Waiting requests poll with their own timers:
 * a promise resolved by another request can continue in that request's context and fail, and never settles if
 * the request was canceled (workerd#2719). A part without a response in time throws, and its caller retries
 * with the same ID.
 */
export class CallGroups<Part, Answer> {
  readonly #lanes = new Map<string, Lane<Part, Answer>>();
  readonly #sideBySide: number;

  constructor(sideBySide = SIDE_BY_SIDE) {
    this.#sideBySide = sideBySide;
  }

  /** Returns the object's response to a part. Throws if the call fails or times out. */
  ask(name: string, asked: Ask<Part, Answer>): Promise<Answer> {
    const lane = this.#laneOf(name);
    const { part } = asked;
    const waiter: Waiter<Part, Answer> = { part, sinceMs: elapsedMs(), turn: null };
    if (isFree(lane)) return this.#carry(name, lane, { asked, waiter, call: begun(lane) });
    return lane.waiting.size >= WAITING_MAX
      ? asked.alone()
      : this.#wait(name, lane, { asked, waiter });
  }

  async #wait(
    name: string,
    lane: Lane<Part, Answer>,
    { asked, waiter }: Omit<Carried<Part, Answer>, "call">,
  ): Promise<Answer> {
    const turn = await waitIn(lane, waiter, asked.after);
    switch (turn.kind) {
      case "answered":
        return turn.answer;
      case "carry":
        return this.#carry(name, lane, { asked, waiter, call: turn.call });
      case "apart":
        return asked.alone();
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
    { asked, waiter, call }: Carried<Part, Answer>,
  ): Promise<Answer> {
    const group = lane.waiting.size === 0 ? [waiter] : takeGroup(lane, waiter);
    try {
      return await (group.length === 1 ? asked.alone() : askTogether(asked, { group, waiter }));
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
  asked: Ask<Part, Answer>,
  {
    group,
    waiter,
  }: { readonly group: Waiter<Part, Answer>[]; readonly waiter: Waiter<Part, Answer> },
): Promise<Answer> {
  const answers = await asked.together(group.map(({ part }) => part));
  for (const [i, one] of group.entries()) one.turn = answers[i] ?? UNANSWERED;
  const turn = answers[group.indexOf(waiter)] ?? UNANSWERED;
  if (turn.kind === "failed") throw new Error(turn.reason);
  return turn.kind === "apart" ? asked.alone() : turn.answer;
}

const UNANSWERED = { kind: "failed", reason: "the call of several had no answer for one" } as const;

/**
 * Reports whether another call may start. Slow calls don't count, because a canceled request's call never
 * ends.
 */
function isFree({ most, underWay }: Busy): boolean {
  if (underWay.size < most) return true;
  const stalledMs = elapsedMs() - STALL_MS;
  for (const call of underWay) if (call.sinceMs < stalledMs) underWay.delete(call);
  return underWay.size < most;
}

function begun({ underWay }: Busy): Call {
  const call = { sinceMs: elapsedMs() };
  underWay.add(call);
  return call;
}

/**
 * Returns the parts that have waited longest, including the carrier, in order of arrival. Parts of canceled
 * requests are dropped after the maximum wait.
 */
function takeGroup<Part, Answer>(
  lane: Lane<Part, Answer>,
  carrier: Waiter<Part, Answer>,
): Waiter<Part, Answer>[] {
  const nowMs = elapsedMs();
  lane.waiting.add(carrier);
  for (const waiter of lane.waiting) {
    if (nowMs - waiter.sinceMs > PATIENCE_MS && waiter !== carrier) lane.waiting.delete(waiter);
  }
  const waiting = [...lane.waiting];
  const group = waiting.slice(0, PARTS_MAX);
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
  if (elapsedMs() - waiter.sinceMs >= PATIENCE_MS) {
    return { kind: "lost", reason: `no answer within ${PATIENCE_MS} ms`, overloaded: false };
  }
  return lane.waiting.has(waiter) && isFree(lane) ? { kind: "carry", call: begun(lane) } : null;
}

function lostBy(error: unknown): Lost {
  const overloaded =
    typeof error === "object" &&
    error !== null &&
    "overloaded" in error &&
    error.overloaded === true;
  return { kind: "lost", reason: String(error), overloaded };
}
