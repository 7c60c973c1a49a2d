import { micros } from "../../../shared/money.ts";
import {
  END_USER_ID,
  KEY_ID,
  MODEL,
  MODELS,
  modelsOfText,
  periodOfRow,
} from "../tables/request-rows.do.ts";
import { selectLastCountedRow } from "../tables/budget-rows.do.ts";
import type { LastCountedRow } from "../tables/budget-rows.do.ts";
import { QUOTA_CHARGED } from "../tables/generation-text.ts";
import type { BudgetMemory, CountedRequest } from "./budget-memory.do.ts";

type CountedRow = {
  seq: number;
  at: number;
  requests: number;
  served: number;
  charged: number;
  tokens: number;
  admitted_at: number;
  period_day: string | null;
  end_user_id: string | null;
  key_id: string;
  session: string | null;
  model: string | null;
  models: string | null;
};

const PARTIES = `admitted_at, period_day, ${END_USER_ID}, ${KEY_ID}, session, ${MODEL}, ${MODELS}`;
/** Includes charges that count only in budgets and quotas. */
const CHARGED = `charged + ${QUOTA_CHARGED}`;
const TOKENS = "prompt_tokens + completion_tokens";

/**
 * Returns the requests that the stored counts don't include. An expired hold counts as a request.
 * Its late charge adds only the amount.
 */
export function selectCounted(
  sql: SqlStorage,
  { scopes }: BudgetMemory,
  checkpoint: LastCountedRow,
): CountedRequest[] {
  if (scopes.size === 0) return [];
  const { seq, floorId } = selectLastCountedRow(sql) ?? checkpoint;
  return sql
    .exec<CountedRow>(
      `SELECT seq, settled_at AS at, 1 AS requests, 1 AS served, ${CHARGED} AS charged, ${TOKENS} AS tokens, ${PARTIES}
      FROM requests WHERE id >= ?1 AND seq > ?2 AND state = 'settled' AND late = 0
      UNION ALL SELECT seq, expires_at, 1, 0, 0, 0, ${PARTIES}
      FROM requests WHERE id >= ?1 AND seq > ?2 AND (state IN ('expired', 'voided') OR late = 1)
      UNION ALL SELECT entries.seq, entries.created_at, 0, 1, ${CHARGED}, ${TOKENS}, ${PARTIES}
      FROM entries JOIN requests ON requests.id = entries.request_id
      WHERE entries.seq > ?2 AND kind = 'usage' ORDER BY 1`,
      floorId,
      seq,
    )
    .toArray()
    .map(countedOf);
}

function countedOf(row: CountedRow): CountedRequest {
  return {
    seq: row.seq,
    period: periodOfRow(row),
    atMs: row.at,
    keyId: row.key_id,
    endUserId: row.end_user_id,
    session: row.session,
    models: row.served === 1 && row.model !== null ? [row.model] : modelsOfText(row.models),
    amounts: {
      dollars: micros(row.charged),
      tokens: row.tokens,
      requests: row.requests,
    },
  };
}
