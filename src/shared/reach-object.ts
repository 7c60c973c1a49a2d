import { refuse } from "./failure.ts";
import type { Failure, Result } from "./failure.ts";
import { storageFailure } from "./storage-failure.ts";
import { afterTimeout } from "./timers.ts";
import type { After } from "./timers.ts";

/** Pauses between attempts, and how long all of them may take. */
const PAUSES_MS: readonly number[] = [50, 200, 800];
const REACH_BUDGET_MS = 2000;

/** `after`: the request's timers, where there is a request. `budgetMs`: for an object that waits for others itself. */
type ReachOptions = {
  readonly after?: After;
  readonly attemptsMax?: number;
  readonly budgetMs?: number;
};

const USUAL: Required<ReachOptions> = {
  after: afterTimeout,
  attemptsMax: PAUSES_MS.length + 1,
  budgetMs: REACH_BUDGET_MS,
};

/**
 * What the object answered; or `unanswered`, when an attempt may or may not have been carried out, or may
 * yet arrive: none was answered (`failure` is then our own fault, `storage_unavailable`), or only a repeat,
 * by a refusal, which is `failure`.
 */
export type Reached<T> =
  | { readonly unanswered: false; readonly result: Result<T> }
  | { readonly unanswered: true; readonly failure: Failure };

/**
 * Calls a Durable Object, each attempt (from 1 on) on a fresh stub (a stub stays broken after an exception) with
 * the same id, so that a repeat does nothing twice. Never again after `.overloaded`: what is overloaded
 * refused the call, so that if no attempt before it was lost the answer is definite.
 */
export async function reachObject<T>(
  call: (attempt: number) => Promise<Result<T>>,
  options: ReachOptions = {},
): Promise<Reached<T>> {
  const { after, attemptsMax, budgetMs } = { ...USUAL, ...options };
  const budget: Budget = { isSpent: false, onSpent: null };
  const cancel = after(budgetMs, () => {
    budget.isSpent = true;
    budget.onSpent?.();
  });
  try {
    for (let attempt = 1; attempt <= attemptsMax && !budget.isSpent; attempt++) {
      // oxlint-disable-next-line no-await-in-loop -- a second attempt is made only after the first failed
      const reached = await attempted(() => call(attempt), budget);
      if (reached === null) break;
      if (!reached.unanswered) return attempt > 1 ? sinceLost(reached.result) : reached;
      if (reached.failure.kind === "overloaded") return refusedBy(reached.failure, attempt > 1);
      if (attempt === attemptsMax) break;
      // oxlint-disable-next-line no-await-in-loop -- the pause between attempts
      await paused(PAUSES_MS[attempt - 1] ?? 0, budget);
    }
    return { unanswered: true, failure: { kind: "storage_unavailable" } };
  } finally {
    cancel();
  }
}

/** `reachObject` for reads: an object that does not answer is a failure like any other. */
export async function readObject<T>(
  call: () => Promise<Result<T>>,
  options?: ReachOptions,
): Promise<Result<T>> {
  const reached = await reachObject(call, options);
  return reached.unanswered ? refuse(reached.failure) : reached.result;
}

/** How long all attempts may take, and who is told when that time is over. */
type Budget = { isSpent: boolean; onSpent: (() => void) | null };

/** One attempt, or null when the budget is spent before it has an answer. */
function attempted<T>(call: () => Promise<Result<T>>, budget: Budget): Promise<Reached<T> | null> {
  return new Promise((resolve) => {
    const lost = (error: unknown): void => {
      resolve({ unanswered: true, failure: storageFailure(error) });
    };
    budget.onSpent = () => {
      resolve(null);
    };
    try {
      call().then((result) => resolve({ unanswered: false, result }), lost);
    } catch (error) {
      lost(error);
    }
  });
}

/** The pause before the next attempt, cut short when the budget is spent. */
async function paused(ms: number, budget: Budget): Promise<void> {
  const spent = new Promise<void>((resolve) => {
    budget.onSpent = resolve;
  });
  await Promise.race([scheduler.wait(ms), spent]);
}

/** An answer after an attempt that was lost: a refusal leaves open what that one did, or may still do. */
function sinceLost<T>(result: Result<T>): Reached<T> {
  return result.ok ? { unanswered: false, result } : { unanswered: true, failure: result.failure };
}

/** An overloaded object did nothing; whether an earlier attempt did is not known. */
function refusedBy(failure: Failure, wasLost: boolean): Reached<never> {
  return wasLost
    ? { unanswered: true, failure: { kind: "storage_unavailable" } }
    : { unanswered: false, result: { ok: false, failure } };
}
