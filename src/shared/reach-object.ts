import { refuse } from "./failure.ts";
import type { Failure, Result } from "./failure.ts";
import { toStorageFailure } from "./storage-failure.ts";
import { afterTimeout } from "./timers.ts";
import type { TimerFunction } from "./timers.ts";

/** Pauses between attempts in ms. REACH_BUDGET_MS limits all attempts together. */
const PAUSES_MS: readonly number[] = [50, 200, 800];
const REACH_BUDGET_MS = 2000;

type ReachOptions = {
  readonly after?: TimerFunction;
  readonly attemptsMax?: number;
  readonly budgetMs?: number;
};

const DEFAULT_OPTIONS: Required<ReachOptions> = {
  after: afterTimeout,
  attemptsMax: PAUSES_MS.length + 1,
  budgetMs: REACH_BUDGET_MS,
};

/**
 * The result of calling an object. `unanswered`: an attempt got no response, but may have run.
 * `failure` is then `storage_unavailable` or the retry's failure.
 */
export type ObjectCallResult<T> =
  | { readonly unanswered: false; readonly result: Result<T> }
  | { readonly unanswered: true; readonly failure: Failure };

/**
 * Calls an object, with retries on new stubs. Doesn't retry `.overloaded` errors, whose call didn't
 * run.
 */
export async function callObjectWithRetries<T>(
  call: (attempt: number) => Promise<Result<T>>,
  options: ReachOptions = {},
): Promise<ObjectCallResult<T>> {
  const { after, attemptsMax, budgetMs } = { ...DEFAULT_OPTIONS, ...options };
  const budget: TimeBudget = { isSpent: false, onSpent: null };
  const cancel = after(budgetMs, () => {
    budget.isSpent = true;
    budget.onSpent?.();
  });
  try {
    for (let attempt = 1; attempt <= attemptsMax && !budget.isSpent; attempt++) {
      const result = await attemptCall(() => call(attempt), budget);
      if (result === null) break;
      if (!result.unanswered) return attempt > 1 ? resultAfterRetry(result.result) : result;
      if (result.failure.kind === "overloaded") return rejectionResult(result.failure, attempt > 1);
      if (attempt === attemptsMax) break;
      await pauseWithinBudget(PAUSES_MS[attempt - 1] ?? 0, budget);
    }
    return { unanswered: true, failure: { kind: "storage_unavailable" } };
  } finally {
    cancel();
  }
}

/** Like `callObjectWithRetries`, but returns the failure of an unanswered call. */
export async function callObject<T>(
  call: () => Promise<Result<T>>,
  options?: ReachOptions,
): Promise<Result<T>> {
  const result = await callObjectWithRetries(call, options);
  return result.unanswered ? refuse(result.failure) : result.result;
}

type TimeBudget = { isSpent: boolean; onSpent: (() => void) | null };

function attemptCall<T>(
  call: () => Promise<Result<T>>,
  budget: TimeBudget,
): Promise<ObjectCallResult<T> | null> {
  return new Promise((resolve) => {
    const fail = (error: unknown): void => {
      resolve({ unanswered: true, failure: toStorageFailure(error) });
    };
    budget.onSpent = () => {
      resolve(null);
    };
    try {
      call().then((result) => resolve({ unanswered: false, result }), fail);
    } catch (error) {
      fail(error);
    }
  });
}

async function pauseWithinBudget(ms: number, budget: TimeBudget): Promise<void> {
  const budgetEnd = new Promise<void>((resolve) => {
    budget.onSpent = resolve;
  });
  await Promise.race([scheduler.wait(ms), budgetEnd]);
}

function resultAfterRetry<T>(result: Result<T>): ObjectCallResult<T> {
  return result.ok ? { unanswered: false, result } : { unanswered: true, failure: result.failure };
}

/**
 * Returns the result of a rejected call, which is unknown if an earlier attempt got no response.
 */
function rejectionResult(failure: Failure, hadLostAttempt: boolean): ObjectCallResult<never> {
  return hadLostAttempt
    ? { unanswered: true, failure: { kind: "storage_unavailable" } }
    : { unanswered: false, result: { ok: false, failure } };
}
