import { elapsedMs } from "./clock.ts";
import type { After } from "./timers.ts";

/** Parts that go in one call at most: an object's turn stays short, and so does what one failure can lose. */
export const PARTS_MAX = 32;
/** Parts that wait for one object in an isolate; who comes beyond them asks alone. */
const WAITING_MAX = 256;
/** A part that has no answer by then gives up its call. */
export const PATIENCE_MS = 800;
/** A call that takes longer keeps nobody waiting: one part of it may wait for something else. The next goes beside it. */
const STALL_MS = 100;
/** So many calls to one object an isolate has under way before parts wait: waiting costs timers, more than a call where few come. */
export const SIDE_BY_SIDE = 4;
/** Who waits looks for its answer after a quarter more of the time that it has waited, but so often at most and at least. */
const LOOK_MS = { least: 1, most: 20 } as const;

/** What became of one part: its answer, or how the call of all failed. `apart`: to be asked alone, nothing was done. */
export type PartAnswer<Answer> =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "apart" }
  | { readonly kind: "failed"; readonly reason: string };

/** One part: how it is asked alone, and how it and others are asked together, both from its own request. */
type Ask<Part, Answer> = {
  readonly part: Part;
  readonly alone: () => Promise<Answer>;
  /** One answer for each part, in their order. */
  readonly together: (parts: readonly Part[]) => Promise<readonly PartAnswer<Answer>[]>;
  /** The request's own timers. */
  readonly after: After;
};

/** How a call failed, in plain words: an error belongs to the request that met it. */
type Lost = { readonly kind: "lost"; readonly reason: string; readonly overloaded: boolean };
/** `carry`: no call is under way any more, and this part carries those that wait with it. */
type Turn<Answer> = PartAnswer<Answer> | Lost | { readonly kind: "carry"; readonly call: Call };
/** One call under way, since when, ms of the isolate's clock. */
type Call = { readonly sinceMs: number };

type Waiter<Part, Answer> = {
  readonly part: Part;
  readonly sinceMs: number;
  /** What it finds when it looks. */
  turn: Turn<Answer> | null;
};
type Carried<Part, Answer> = {
  readonly asked: Ask<Part, Answer>;
  readonly waiter: Waiter<Part, Answer>;
  readonly call: Call;
};
/** The calls under way to one object, at most so many while none takes long. */
type Busy = { readonly most: number; readonly underWay: Set<Call> };
type Lane<Part, Answer> = Busy & {
  /** In the order in which they came. */
  readonly waiting: Set<Waiter<Part, Answer>>;
};

/**
 * The calls of one isolate to objects of one class. A part that comes while `SIDE_BY_SIDE` calls to its object are
 * under way waits, and goes in the next one together with all that wait, in their order; alone, nothing waits. Requests meet
 * in plain values alone: who waits looks for its answer by timers of its own request. A promise that another
 * request resolves would be cheaper, but goes on in that one's context now and then, where everything fails; and
 * one whose request was cancelled never ends (workerd#2719). A part that finds nothing in time throws, as one whose
 * call failed does; whoever repeats it does so by its id.
 */
export class CallGroups<Part, Answer> {
  readonly #lanes = new Map<string, Lane<Part, Answer>>();
  readonly #sideBySide: number;

  constructor(sideBySide = SIDE_BY_SIDE) {
    this.#sideBySide = sideBySide;
  }

  /** What the object named `name` answers to the part. Throws where its call fails or has no answer in time. */
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

  /** The parts that wait now, for tests and for what is counted. */
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

/** Asks for all of a group, tells each its answer, and says the carrier's own. */
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

/** Whether another call may begin. What takes long does not count; a call whose request was cancelled never ends. */
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
 * Those that have waited longest, and who carries them among them, in the order in which they came. Of a request that
 * was cancelled nobody looks any more: what waits longer than anybody would is left out.
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
