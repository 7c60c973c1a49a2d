import { refuse } from "./failure.ts";
import type { Failure, Result } from "./failure.ts";
import { storageFailure } from "./storage-failure.ts";
import { afterTimeout } from "./timers.ts";
import type { After } from "./timers.ts";

/** Ms of the pauses between attempts, and of all attempts together. */
const PAUSES_MS: readonly number[] = [50, 200, 800];
const REACH_BUDGET_MS = 2000;

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
 * The result of a call to an object. `unanswered`: an attempt may have run, and `failure` is
 * `storage_unavailable` or a retry's rejection.
 */
export type Reached<T> =
  | { readonly unanswered: false; readonly result: Result<T> }
  | { readonly unanswered: true; readonly failure: Failure };

/**
 * Calls an object, and retries on new stubs. Stops after `.overloaded`, which means that the call
 * did nothing.
 */
export async function callObjectWithRetries<T>(
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
      const reached = await attempted(() => call(attempt), budget);
      if (reached === null) break;
      if (!reached.unanswered) return attempt > 1 ? sinceLost(reached.result) : reached;
      if (reached.failure.kind === "overloaded") return refusedBy(reached.failure, attempt > 1);
      if (attempt === attemptsMax) break;
      await paused(PAUSES_MS[attempt - 1] ?? 0, budget);
    }
    return { unanswered: true, failure: { kind: "storage_unavailable" } };
  } finally {
    cancel();
  }
}

export async function callObject<T>(
  call: () => Promise<Result<T>>,
  options?: ReachOptions,
): Promise<Result<T>> {
  const reached = await callObjectWithRetries(call, options);
  return reached.unanswered ? refuse(reached.failure) : reached.result;
}

type Budget = { isSpent: boolean; onSpent: (() => void) | null };

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

async function paused(ms: number, budget: Budget): Promise<void> {
  const spent = new Promise<void>((resolve) => {
    budget.onSpent = resolve;
  });
  await Promise.race([scheduler.wait(ms), spent]);
}

function sinceLost<T>(result: Result<T>): Reached<T> {
  return result.ok ? { unanswered: false, result } : { unanswered: true, failure: result.failure };
}

/**
 * Returns the rejection. An overloaded call did nothing, but an earlier lost attempt may have run.
 */
function refusedBy(failure: Failure, wasLost: boolean): Reached<never> {
  return wasLost
    ? { unanswered: true, failure: { kind: "storage_unavailable" } }
    : { unanswered: false, result: { ok: false, failure } };
}
