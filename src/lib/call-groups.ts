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
/** Who waits looks for its answer after a quarter more of the time that it has waited, but so often at most and at least. */
const LOOK_MS = { least: 1, most: 20 } as const;

/** What became of one part: its answer, or how the call of all failed. `apart`: to be asked alone, nothing was done. */
export type PartAnswer<Answer> =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "apart" }
  | { readonly kind: "failed"; readonly reason: string };

/** One part: how it is asked alone, and how it and others are asked together, both from its own request. */
export type Ask<Part, Answer> = {
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
type Turn<Answer> = PartAnswer<Answer> | Lost | { readonly kind: "carry" };

type Waiter<Part, Answer> = {
  readonly part: Part;
  readonly sinceMs: number;
  /** What it finds when it looks. */
  turn: Turn<Answer> | null;
};
type Lane<Part, Answer> = {
  /** The call under way, null without one. */
  underWay: { readonly sinceMs: number } | null;
  /** In the order in which they came. */
  readonly waiting: Set<Waiter<Part, Answer>>;
};

/**
 * The calls of one isolate to objects of one class. A part that comes while a call to its object is under way
 * waits, and goes in the next one together with all that wait, in their order; alone, nothing waits. Requests meet
 * in plain values alone: who waits looks for its answer by timers of its own request. A promise that another
 * request resolves would be cheaper, but goes on in that one's context now and then, where everything fails; and
 * one whose request was cancelled never ends (workerd#2719). A part that finds nothing in time throws, as one whose
 * call failed does; whoever repeats it does so by its id.
 */
export class CallGroups<Part, Answer> {
  readonly #lanes = new Map<string, Lane<Part, Answer>>();

  /** What the object named `name` answers to the part. Throws where its call fails or has no answer in time. */
  async ask(name: string, asked: Ask<Part, Answer>): Promise<Answer> {
    const lane = this.#laneOf(name);
    const { part } = asked;
    const waiter: Waiter<Part, Answer> = { part, sinceMs: elapsedMs(), turn: null };
    if (isFree(lane)) return this.#carry(name, lane, { asked, waiter });
    if (lane.waiting.size >= WAITING_MAX) return asked.alone();
    const turn = await waitIn(lane, waiter, asked.after);
    switch (turn.kind) {
      case "answered":
        return turn.answer;
      case "carry":
        return this.#carry(name, lane, { asked, waiter });
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
    { asked, waiter }: { readonly asked: Ask<Part, Answer>; readonly waiter: Waiter<Part, Answer> },
  ): Promise<Answer> {
    const call = { sinceMs: elapsedMs() };
    lane.underWay = call;
    const group = takeGroup(lane, waiter);
    try {
      if (group.length === 1) return await asked.alone();
      const answers = await asked.together(group.map(({ part }) => part));
      for (const [i, one] of group.entries()) one.turn = answers[i] ?? UNANSWERED;
      const turn = answers[group.indexOf(waiter)] ?? UNANSWERED;
      if (turn.kind === "failed") throw new Error(turn.reason);
      return turn.kind === "apart" ? await asked.alone() : turn.answer;
    } catch (error) {
      const lost = lostBy(error);
      for (const one of group) one.turn ??= lost;
      throw error;
    } finally {
      if (lane.underWay === call) this.#ended(name, lane);
    }
  }

  /** Who looks next of those that wait carries the next call, in its own request. */
  #ended(name: string, lane: Lane<Part, Answer>): void {
    lane.underWay = null;
    if (lane.waiting.size === 0 && this.#lanes.get(name) === lane) this.#lanes.delete(name);
  }

  #laneOf(name: string): Lane<Part, Answer> {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const lane: Lane<Part, Answer> = { underWay: null, waiting: new Set() };
    this.#lanes.set(name, lane);
    return lane;
  }
}

const UNANSWERED = { kind: "failed", reason: "the call of several had no answer for one" } as const;

/** Whether nothing is under way, or it takes long; a call whose request was cancelled never says that it has ended. */
function isFree({ underWay }: { readonly underWay: { readonly sinceMs: number } | null }): boolean {
  return underWay === null || elapsedMs() - underWay.sinceMs > STALL_MS;
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
      if (turn.kind === "carry") lane.underWay = { sinceMs: elapsedMs() }; // nobody else carries
      else lane.waiting.delete(waiter);
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
  return lane.waiting.has(waiter) && isFree(lane) ? { kind: "carry" } : null;
}

function lostBy(error: unknown): Lost {
  const overloaded =
    typeof error === "object" &&
    error !== null &&
    "overloaded" in error &&
    error.overloaded === true;
  return { kind: "lost", reason: String(error), overloaded };
}
