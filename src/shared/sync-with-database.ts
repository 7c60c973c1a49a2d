import { refuse, success } from "./failure.ts";
import type { Result } from "./failure.ts";
import { callObject } from "./reach-object.ts";

const ROUNDS_MAX = 20;

type ObjectSync<Row> = {
  readonly send: (row: Row) => Promise<Result<unknown>>;
  readonly reread: () => Promise<Row | null>;
  readonly isSame: (one: Row, other: Row) => boolean;
};

/**
 * Sends `row` to an object, and again while D1 has a newer row, so that the last of concurrent
 * changes wins. Fails with 503 if no response arrives. Retrying the change completes it.
 */
export async function syncWithDatabase<Row>(row: Row, sync: ObjectSync<Row>): Promise<Result<Row>> {
  let sentRow = row;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const current = sentRow;
    const objectCall = await callObject(() => sync.send(current));
    if (!objectCall.ok) return objectCall;
    const latest = await sync.reread();
    if (latest === null || sync.isSame(sentRow, latest)) return success(latest ?? sentRow);
    sentRow = latest;
  }
  return refuse({ kind: "overloaded" });
}
