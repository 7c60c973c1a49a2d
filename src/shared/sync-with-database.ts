import { refuse, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { reachObject } from "./reach-object.ts";

const ROUNDS_MAX = 20;

/** How an object is brought in line with its row in the book. */
type Following<Row> = {
  /** Tells the object what the row says; may be repeated. */
  readonly tell: (row: Row) => Promise<Result<unknown>>;
  /** The row as the book has it now; null when it is gone. */
  readonly reread: () => Promise<Row | null>;
  /** Whether two rows tell the object the same. */
  readonly isSame: (one: Row, other: Row) => boolean;
};

/**
 * Tells an object what `row` says, and again for as long as the book says something else afterwards:
 * of two changes at once the later one in the book is also the last one told. Answers with the row as
 * it is then. An object that does not answer is a 503; a repeat of the change completes it.
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
