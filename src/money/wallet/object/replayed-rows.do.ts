import { parseStoredJson } from "../../../shared/stored-json.ts";
import { declaredTagsToJson } from "../../../shared/tags.ts";
import type { Tags } from "../../../shared/tags.ts";
import { tokenColumnsSql } from "../../../shared/usage-sums.ts";
import type { LedgerRowUsage } from "../rules/usage-totals.ts";
import {
  END_USER_ID_SQL,
  KEY_ID_SQL,
  REQUEST_MODEL_SQL,
  MODELS_SQL,
  parseModels,
  periodOfRequest,
} from "../tables/request-rows.do.ts";
import { QUOTA_CHARGE_SQL, REQUEST_TAGS_SQL } from "../tables/generation-json.ts";
import { findTagKeysDeclaredAt } from "../tables/tag-rows.do.ts";
import type { TagKeys } from "../tables/tag-rows.do.ts";
import type { CountedRequest } from "./budget-memory.do.ts";

type LaterRow = Omit<LedgerRowUsage, "model"> &
  Omit<CountedRequest, "period" | "models" | "amounts"> & {
    readonly requests: number;
    readonly served: number;
    readonly periodDay: string | null;
    readonly quotaCharged: number;
    readonly model: string | null;
    readonly models: string | null;
  };

const COLUMNS = `${REQUEST_TAGS_SQL} AS tags, admitted_at AS admittedAt, period_day AS periodDay, charged,
  ${END_USER_ID_SQL} AS endUserId, external_id AS externalId, ${KEY_ID_SQL} AS keyId, session,
  ${REQUEST_MODEL_SQL} AS model, ${MODELS_SQL} AS models, ${QUOTA_CHARGE_SQL} AS quotaCharged,
  ${tokenColumnsSql(({ inRow }) => inRow)}`;

/** A request that a ledger row counts. `posted` is null if the hold expired uncharged. */
type CountedUsage = CountedRequest & { readonly posted: LedgerRowUsage | null };

/**
 * Returns the requests of ledger rows after `seq`. An expired hold counts as a request, so its late
 * charge adds only the amount.
 */
export function selectCountedUsage(
  sql: SqlStorage,
  { floorId, tagKeys }: { readonly floorId: string; readonly tagKeys: readonly TagKeys[] },
  seq: number,
): CountedUsage[] {
  return sql
    .exec<LaterRow>(
      `SELECT seq, settled_at AS atMs, 1 AS requests, 1 AS served, ${COLUMNS}
      FROM requests WHERE id >= ?1 AND seq > ?2 AND state = 'settled' AND late = 0
      UNION ALL SELECT seq, expires_at AS atMs, 1 AS requests, 0 AS served, ${COLUMNS}
      FROM requests WHERE id >= ?1 AND seq > ?2 AND (state IN ('expired', 'voided') OR late = 1)
      UNION ALL SELECT entries.seq, created_at AS atMs, 0 AS requests, 1 AS served, ${COLUMNS}
      FROM entries JOIN requests ON requests.id = entries.request_id
      WHERE entries.seq > ?2 AND kind = 'usage' ORDER BY seq`,
      floorId,
      seq,
    )
    .toArray()
    .map((row) => countedUsageFromRow(row, findTagKeysDeclaredAt(tagKeys, row.seq)));
}

function countedUsageFromRow(row: LaterRow, tagKeys: readonly string[]): CountedUsage {
  const { seq, atMs, keyId, endUserId, session = null, charged, tags } = row;
  const isServed = row.served === 1;
  const tokens = isServed ? row.promptTokens + row.completionTokens : 0;
  const declared = tags === null ? null : declaredTagsToJson(parseStoredJson<Tags>(tags), tagKeys);
  return {
    posted: isServed ? { ...row, model: row.model ?? "", tags: declared } : null,
    seq,
    period: periodOfRequest(row),
    atMs,
    keyId,
    endUserId,
    session,
    models: isServed && row.model !== null ? [row.model] : parseModels(row.models),
    amounts: { dollars: isServed ? charged + row.quotaCharged : 0, tokens, requests: row.requests },
  };
}
