import { micros } from "../../../shared/money.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";
import { declaredTagsToJson } from "../../../shared/tags.ts";
import type { Tags } from "../../../shared/tags.ts";
import { tokenColumns, mapTokenNames } from "../../../shared/usage-sums.ts";
import type { TokenCounts } from "../../../shared/usage-sums.ts";
import type { PostedUsage } from "../rules/usage-totals.ts";
import {
  END_USER_ID_SQL,
  KEY_ID_SQL,
  MODEL_SQL,
  MODELS_SQL,
  parseModels,
  periodOfRow,
} from "../tables/request-rows.do.ts";
import { QUOTA_CHARGE_SQL, TAGS_SQL } from "../tables/generation-text.ts";
import { declaredTagKeys } from "../tables/tag-rows.do.ts";
import type { TagKeys } from "../tables/tag-rows.do.ts";
import type { CountedRequest } from "./budget-memory.do.ts";

type LaterRow = TokenCounts & {
  place: number;
  at: number;
  requests: number;
  served: number;
  admitted_at: number;
  period_day: string | null;
  charged: number;
  quota_charged: number;
  end_user_id: string | null;
  external_id: string | null;
  key_id: string;
  session: string | null;
  model: string | null;
  models: string | null;
  tags: string | null;
};

const COLUMNS = `${TAGS_SQL} AS tags, admitted_at, period_day, charged, ${END_USER_ID_SQL}, external_id, ${KEY_ID_SQL},
  session, ${MODEL_SQL}, ${MODELS_SQL}, ${QUOTA_CHARGE_SQL} AS quota_charged, ${tokenColumns(({ inRow }) => inRow)}`;

/** A request that a ledger row counts. `posted` is null for a hold that expired without a charge. */
type CountedUsage = CountedRequest & { readonly posted: PostedUsage | null };

/**
 * Returns the requests of ledger rows after `seq`. An expired hold counts as a request. Its late
 * charge adds only the amount.
 */
export function selectCountedUsage(
  sql: SqlStorage,
  { floorId, tagKeys }: { readonly floorId: string; readonly tagKeys: readonly TagKeys[] },
  seq: number,
): CountedUsage[] {
  return sql
    .exec<LaterRow>(
      `SELECT seq AS place, settled_at AS at, 1 AS requests, 1 AS served, ${COLUMNS}
      FROM requests WHERE id >= ?1 AND seq > ?2 AND state = 'settled' AND late = 0
      UNION ALL SELECT seq AS place, expires_at AS at, 1 AS requests, 0 AS served, ${COLUMNS}
      FROM requests WHERE id >= ?1 AND seq > ?2 AND (state IN ('expired', 'voided') OR late = 1)
      UNION ALL SELECT entries.seq AS place, created_at AS at, 0 AS requests, 1 AS served, ${COLUMNS}
      FROM entries JOIN requests ON requests.id = entries.request_id
      WHERE entries.seq > ?2 AND kind = 'usage' ORDER BY place`,
      floorId,
      seq,
    )
    .toArray()
    .map((row) => countedUsageFromRow(row, declaredTagKeys(tagKeys, row.place)));
}

function countedUsageFromRow(row: LaterRow, tagKeys: readonly string[]): CountedUsage {
  const isServed = row.served === 1;
  const posted = isServed ? postedUsageFromRow(row, tagKeys) : null;
  return {
    posted,
    seq: row.place,
    period: periodOfRow(row),
    atMs: row.at,
    keyId: row.key_id,
    endUserId: row.end_user_id,
    session: row.session,
    models: isServed && row.model !== null ? [row.model] : parseModels(row.models),
    amounts: {
      dollars: isServed ? row.charged + row.quota_charged : 0,
      tokens: posted === null ? 0 : posted.promptTokens + posted.completionTokens,
      requests: row.requests,
    },
  };
}

function postedUsageFromRow(row: LaterRow, tagKeys: readonly string[]): PostedUsage {
  return {
    admittedAt: row.admitted_at,
    charged: micros(row.charged),
    externalId: row.external_id,
    keyId: row.key_id,
    model: row.model ?? "",
    tags: row.tags === null ? null : declaredTagsToJson(parseStoredJson<Tags>(row.tags), tagKeys),
    ...mapTokenNames((name) => row[name]),
  };
}
