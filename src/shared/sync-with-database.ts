import { refuse, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { callObjectWithRetries } from "./reach-object.ts";

const ROUNDS_MAX = 20;

type Following<Row> = {
  readonly tell: (row: Row) => Promise<Result<unknown>>;
  readonly reread: () => Promise<Row | null>;
  readonly isSame: (one: Row, other: Row) => boolean;
};

/**
 * Sends `row` to an object, again while D1 has changed, so that the last of concurrent changes
 * wins. Returns 503 without a response. Repeating the change then completes it.
 */
export async function syncWithDatabase<Row>(
  row: Row,
  following: Following<Row>,
): Promise<Result<Row>> {
  let reported = row;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const current = reported;
    const reached = await callObjectWithRetries(() => following.tell(current));
    if (reached.unanswered) return refuse(reached.failure);
    if (!reached.result.ok) return reached.result;
    const now = await following.reread();
    if (now === null || following.isSame(reported, now)) return success(now ?? reported);
    reported = now;
  }
  return refuse({ kind: "overloaded" });
}
