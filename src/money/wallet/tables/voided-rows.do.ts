import { assert } from "../../../shared/assert.ts";
import { costOf } from "../../../shared/cost.ts";
import type { Generation } from "../../../shared/generation.ts";
import { receiptDetailJson, sharedFieldsJson } from "./generation-text.ts";
import { getOrInsertName } from "./request-rows.do.ts";
import type { NameNumbers } from "./request-rows.do.ts";

type VoidDetails = {
  readonly at: number;
  /**
   * The provider call whose cost the operator pays. The row stores this cost, or 0 if the purchase
   * price is unknown.
   */
  readonly absorbed?: Generation | null;
  readonly names: NameNumbers;
};

export function markVoided(
  sql: SqlStorage,
  id: string,
  { at, absorbed = null, names }: VoidDetails,
): void {
  const { bought, usage } = absorbed ?? {};
  const cursor = sql.exec(
    `UPDATE requests SET state = 'voided', settled_at = ?1, cost = ?2, shortfall = ?2, sold = ?3,
      detail = coalesce(?4, detail)
    WHERE id = ?5 AND state IN ('held', 'expired')`,
    at,
    bought === undefined || usage === undefined ? 0 : costOf(bought, usage),
    absorbed === null ? null : getOrInsertName(sql, names, sharedFieldsJson(absorbed)),
    absorbed === null ? null : lostDetail(absorbed),
    id,
  );
  assert(cursor.rowsWritten === 1, `request ${id} was not open`);
}

/** Returns the other failed calls that we absorb. Returns null if there are none. */
function lostDetail(absorbed: Generation): string | null {
  const hasLost = absorbed.failed?.some(({ lost }) => lost !== undefined) === true;
  return hasLost ? receiptDetailJson({ ...absorbed, tags: {} }) : null;
}
