import { refuse, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { reachObject } from "./reach-object.ts";

const ROUNDS_MAX = 20;

type Following<Row> = {
  /** Sends the row to the object. Can be repeated. */
  readonly tell: (row: Row) => Promise<Result<unknown>>;
  readonly reread: () => Promise<Row | null>;
  /** Reports whether two rows mean the same for the object. */
  readonly isSame: (one: Row, other: Row) => boolean;
};

/**
 * Sends `row` to an object, and repeats while the database has changed since, so that the last of concurrent
 * changes wins. Returns the final row. An object that doesn't respond is a 503; repeating the change
 * completes it.
 */
export async function syncWithDatabase<Row>(
  row: Row,
  following: Following<Row>,
): Promise<Result<Row>> {
  let told = row;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const current = told;
    // oxlint-disable-next-line no-await-in-loop -- each round depends on the one before
    const reached = await reachObject(() => following.tell(current));
    if (reached.unanswered) return refuse(reached.failure);
    if (!reached.result.ok) return reached.result;
    // oxlint-disable-next-line no-await-in-loop -- the same
    const now = await following.reread();
    if (now === null || following.isSame(told, now)) return success(now ?? told);
    told = now;
  }
  return refuse({ kind: "overloaded" });
}
