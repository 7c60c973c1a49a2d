import { elapsedMs } from "./clock.ts";
import type { After } from "./timers.ts";

/** Parts that go in one call at most: an object's turn stays short, and so does what one failure can lose. */
export const PARTS_MAX = 32;
/** Parts that wait for one object in an isolate; who comes beyond them asks alone. */
const WAITING_MAX = 256;
/** A part that has no answer by then gives up its call, and a call that takes longer keeps nobody waiting. */
export const PATIENCE_MS = 800;

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
/** `carry`: the call before has ended, and this part carries those that wait with it. */
type Turn<Answer> = PartAnswer<Answer> | Lost | { readonly kind: "carry" };

type Waiter<Part, Answer> = {
  readonly part: Part;
  readonly hear: (turn: Turn<Answer>) => void;
};
type Lane<Part, Answer> = {
  /** The call under way, or its carrier that was called; null without one. */
  underWay: { readonly sinceMs: number } | null;
  readonly waiting: Set<Waiter<Part, Answer>>;
};

/**
 * The calls of one isolate to objects of one class. A part that comes while a call to its object is under way
 * waits, and goes in the next one together with all that wait, in their order; alone, nothing waits. Every part
 * has a promise and a timer of its own request, which alone are what it waits for: the request whose call carries
 * others may be cancelled, and what belongs to it then never ends (workerd#2719). A part whose timer rings
 * throws, as one whose call failed does; whoever repeats it does so by its id.
 */
export class CallGroups<Part, Answer> {
  readonly #lanes = new Map<string, Lane<Part, Answer>>();

  /** What the object named `name` answers to the part. Throws where its call fails or has no answer in time. */
  async ask(name: string, asked: Ask<Part, Answer>): Promise<Answer> {
    const lane = this.#laneOf(name);
    if (isFree(lane)) return this.#carry(name, lane, asked);
    if (lane.waiting.size >= WAITING_MAX) return asked.alone();
    const turn = await waitIn(lane, asked);
    switch (turn.kind) {
      case "answered":
        return turn.answer;
      case "carry":
        return this.#carry(name, lane, asked);
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
    { part, alone, together }: Ask<Part, Answer>,
  ): Promise<Answer> {
    const group = [...lane.waiting].slice(0, PARTS_MAX - 1);
    for (const waiter of group) lane.waiting.delete(waiter);
    const call = { sinceMs: elapsedMs() };
    lane.underWay = call;
    try {
      if (group.length === 0) return await alone();
      const answers = await together([part, ...group.map((waiter) => waiter.part)]);
      const [own, ...others] = answers;
      for (const [i, waiter] of group.entries()) waiter.hear(others[i] ?? UNANSWERED);
      const turn = own ?? UNANSWERED;
      if (turn.kind === "failed") throw new Error(turn.reason);
      return turn.kind === "apart" ? await alone() : turn.answer;
    } catch (error) {
      const lost = lostBy(error);
      for (const waiter of group) waiter.hear(lost);
      throw error;
    } finally {
      if (lane.underWay === call) this.#callNext(name, lane);
    }
  }

  /** The part that has waited longest carries the next call, in its own request. */
  #callNext(name: string, lane: Lane<Part, Answer>): void {
    const [next] = lane.waiting;
    lane.underWay = next === undefined ? null : { sinceMs: elapsedMs() };
    if (next === undefined) {
      if (this.#lanes.get(name) === lane) this.#lanes.delete(name);
      return;
    }
    lane.waiting.delete(next);
    next.hear({ kind: "carry" });
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

/** Whether nothing is under way; a call whose request was cancelled never says that it has ended. */
function isFree({ underWay }: { readonly underWay: { readonly sinceMs: number } | null }): boolean {
  return underWay === null || elapsedMs() - underWay.sinceMs > PATIENCE_MS;
}

function waitIn<Part, Answer>(
  lane: Lane<Part, Answer>,
  { part, after }: Ask<Part, Answer>,
): Promise<Turn<Answer>> {
  return new Promise((resolve) => {
    const waiter: Waiter<Part, Answer> = {
      part,
      hear(turn) {
        cancel();
        resolve(turn);
      },
    };
    const cancel = after(PATIENCE_MS, () => {
      lane.waiting.delete(waiter);
      resolve({ kind: "lost", reason: `no answer within ${PATIENCE_MS} ms`, overloaded: false });
    });
    lane.waiting.add(waiter);
  });
}

function lostBy(error: unknown): Lost {
  const overloaded =
    typeof error === "object" &&
    error !== null &&
    "overloaded" in error &&
    error.overloaded === true;
  return { kind: "lost", reason: String(error), overloaded };
}
