import { assert } from "../../../shared/assert.ts";
import { costOf } from "../../../shared/cost.ts";
import type { Generation } from "../../../shared/generation.ts";
import { soldOf } from "./generation-text.ts";
import { numberOf } from "./request-rows.do.ts";
import type { NameNumbers } from "./request-rows.do.ts";

type Voided = {
  readonly at: number;
  /** The call whose bill we pay. Its row has the cost, or 0 if the purchase price is unknown. */
  readonly absorbed?: Generation | null;
  readonly names: NameNumbers;
};

export function updateVoided(
  sql: SqlStorage,
  id: string,
  { at, absorbed = null, names }: Voided,
): void {
  const { bought, usage } = absorbed ?? {};
  const cursor = sql.exec(
    `UPDATE requests SET state = 'voided', settled_at = ?1, cost = ?2, shortfall = ?2, sold = ?3
    WHERE id = ?4 AND state IN ('held', 'expired')`,
    at,
    bought === undefined || usage === undefined ? 0 : costOf(bought, usage),
    absorbed === null ? null : numberOf(sql, names, soldOf(absorbed)),
    id,
  );
  assert(cursor.rowsWritten === 1, `request ${id} was not open`);
}
