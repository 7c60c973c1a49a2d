import { refuse } from "./failure.ts";
import type { Result } from "./failure.ts";
import { afterTimeout } from "./timers.ts";
import type { After } from "./timers.ts";

/** Pauses between attempts, and how long all of them may take. */
const PAUSES_MS: readonly number[] = [50, 200, 800];
export const REACH_BUDGET_MS = 2000;

/** `after`: the request's timers, where there is a request. */
export type ReachOptions = { readonly after?: After; readonly attemptsMax?: number };

/**
 * Calls a Durable Object, each attempt on a fresh stub (a stub stays broken after an exception) with the
 * same id, so that a repeat does nothing twice. Never again after `.overloaded`. When no attempt was
 * answered within the budget the outcome is unknown: `storage_unavailable` or `overloaded`.
 */
export async function reachObject<T>(
  call: () => Promise<Result<T>>,
  { after = afterTimeout, attemptsMax = PAUSES_MS.length + 1 }: ReachOptions = {},
): Promise<Result<T>> {
  const end = Promise.withResolvers<null>();
  let isSpent = false;
  const cancel = after(REACH_BUDGET_MS, () => {
    isSpent = true;
    end.resolve(null);
  });
  let last: Result<T> = refuse({ kind: "storage_unavailable" });
  try {
    for (let attempt = 1; attempt <= attemptsMax && !isSpent; attempt++) {
      // oxlint-disable-next-line no-await-in-loop -- a second attempt is made only after the first failed
      const answer = await Promise.race([call().catch(refusalOf), end.promise]);
      if (answer === null) return last;
      if (answer.ok || answer.failure.kind !== "storage_unavailable") return answer;
      last = answer;
      if (attempt === attemptsMax) return last;
      // oxlint-disable-next-line no-await-in-loop -- the pause between attempts
      await Promise.race([scheduler.wait(PAUSES_MS[attempt - 1] ?? 0), end.promise]);
    }
    return last;
  } finally {
    cancel();
  }
}

/** What an exception of a Durable Object call means: our own fault, never the caller's. */
function refusalOf(error: unknown): Result<never> {
  const overloaded = (error as { overloaded?: unknown } | null)?.overloaded === true;
  return refuse({ kind: overloaded ? "overloaded" : "storage_unavailable" });
}
