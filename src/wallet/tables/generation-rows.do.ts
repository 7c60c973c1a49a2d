import type { Generation } from "../../lib/generation.ts";
import { idFloor } from "../../lib/id.ts";
import { micros } from "../../lib/money.ts";
import { HOLD_ID, ID_AGE_MAX_MS } from "../rules/hold-guards.ts";
import type { RequestState } from "../rules/ledger.ts";
import { microsOrNull } from "../rules/quota.ts";
import type {
  GenerationRecord,
  RequestPage,
  RequestQuery,
  RequestRecord,
} from "../wallet-contract.ts";
import { KEY_ID, MODEL } from "./request-rows.do.ts";
import type { Rest, Sold } from "./request-rows.do.ts";

type Row = {
  id: string;
  state: RequestState;
  admitted_at: number;
  granted: number | null;
  charged: number;
  shortfall: number;
  key_id: string;
  external_id: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  sold: string | null;
  detail: string | null;
};

const COLUMNS = `id, state, admitted_at, granted, charged, shortfall, ${KEY_ID}, external_id, prompt_tokens,
  completion_tokens, (SELECT text FROM names WHERE number = sold) AS sold, detail`;

/** A settled request; null for any other id. Whose it is says its hold, whatever was settled later. */
export function selectGeneration(sql: SqlStorage, id: string): GenerationRecord | null {
  const [row] = sql
    .exec<Row>(`SELECT ${COLUMNS} FROM requests WHERE id = ? AND state = 'settled'`, id)
    .toArray();
  return row === undefined ? null : generationOf(row);
}

/** Sorts after every id. */
const LAST_ID = "~";

/**
 * A page of requests, newest first, by the tables' own order. Looks at no more than `scannedMax` rows: where they
 * hold fewer than were asked for, the page is short and goes on after them.
 */
export function selectRequestPage(
  sql: SqlStorage,
  asked: RequestQuery,
  scannedMax: number,
): RequestPage {
  const { fromMs, beforeMs, limit } = asked;
  const beforeId = [
    asked.after ?? LAST_ID,
    idFloor(HOLD_ID, beforeMs + ID_AGE_MAX_MS),
  ].toSorted()[0];
  const fromId = idFloor(HOLD_ID, fromMs - ID_AGE_MAX_MS);
  const [end] = sql
    .exec<{ id: string }>(
      "SELECT id FROM requests WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?",
      fromId,
      beforeId ?? "",
      scannedMax - 1,
    )
    .toArray();
  const rows = sql
    .exec<Row>(
      `SELECT ${COLUMNS} FROM requests
      WHERE id >= ?1 AND id < ?2 AND admitted_at >= ?3 AND admitted_at < ?4
        AND (?5 IS NULL OR state = ?5) AND (?6 IS NULL OR external_id = ?6)
        AND (?7 IS NULL OR ${bare(KEY_ID)} IN (SELECT value FROM json_each(?7)))
        AND (?8 IS NULL OR ${bare(MODEL)} = ?8)
      ORDER BY id DESC LIMIT ?9`,
      end?.id ?? fromId,
      beforeId ?? "",
      fromMs,
      beforeMs,
      asked.state,
      asked.externalId,
      asked.keyIds === null ? null : JSON.stringify(asked.keyIds),
      asked.model,
      limit + 1,
    )
    .toArray();
  const shown = rows.slice(0, limit);
  const nextAfter = rows.length > limit ? (shown.at(-1)?.id ?? null) : (end?.id ?? null);
  return { requests: shown.map(recordOf), nextAfter };
}

/** A column's expression without the name that it is given. */
function bare(column: string): string {
  return column.slice(0, column.lastIndexOf(" AS "));
}

function recordOf(row: Row): RequestRecord {
  return {
    id: row.id,
    state: row.state,
    keyId: row.key_id === "" ? null : row.key_id,
    externalId: row.external_id,
    createdAt: row.admitted_at,
    heldMicro: microsOrNull(row.granted),
    generation: row.state === "settled" ? generationOf(row) : null,
  };
}

function generationOf(row: Row): GenerationRecord {
  const whose = {
    id: row.id,
    keyId: row.key_id,
    externalId: row.external_id,
    createdAt: row.admitted_at,
    costMicro: micros(row.charged),
    heldMicro: micros(row.granted ?? 0),
    absorbedMicro: micros(row.shortfall),
  };
  const detail: unknown = JSON.parse(row.detail ?? "");
  if (row.sold === null) return { ...(detail as Generation), ...whose };
  const [
    streamed,
    cacheRead,
    cacheWrite,
    reasoning,
    firstByteMs,
    durationMs,
    estimated,
    finishReason,
    cacheWriteHour,
  ] = detail as Rest;
  const input = row.prompt_tokens - cacheRead - cacheWrite;
  return {
    ...(JSON.parse(row.sold) as Sold),
    ...whose,
    usage: {
      input,
      cacheRead,
      cacheWrite,
      ...(cacheWriteHour !== undefined && { cacheWriteHour }),
      output: row.completion_tokens,
      reasoning,
    },
    streamed: streamed === 1,
    firstByteMs,
    durationMs,
    estimated: estimated === 1,
    finishReason,
  };
}
