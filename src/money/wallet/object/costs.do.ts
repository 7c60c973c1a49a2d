import type {
  CostGroup,
  CostQuery,
  ProviderCostReport,
} from "../../../shared/contracts/reports.ts";
import { computeCost } from "../../../shared/cost.ts";
import type { FailedAttempt } from "../../../shared/generation.ts";
import { NO_USAGE } from "../../../shared/usage.ts";
import { micros } from "../../../shared/money.ts";
import { periodOf } from "../../../shared/period.ts";
import { holdIdBound, lowestHoldIdSince } from "../rules/hold-ids.ts";
import {
  parseFailedAttempts,
  parseGeneration,
  parseSharedChargeFields,
} from "../tables/generation-json.ts";
import { retentionStartMs } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";
import { findLastLossMs } from "./request-usage.do.ts";

const ROWS_MAX = 50_000;

type CostRow = {
  admitted_at: number;
  state: "settled" | "voided";
  shortfall: number;
  charged: number;
  prompt_tokens: number;
  completion_tokens: number;
  detail: string | null;
  sold: string;
};

/**
 * Returns costs from the newest `ROWS_MAX` requests that providers billed: settled requests, and
 * voided requests that the operator pays. Counts other billed failed calls separately.
 */
export function readCosts(tx: Tx, query: CostQuery): ProviderCostReport {
  const { sql } = tx;
  const fromMs = Math.max(query.fromMs, retentionStartMs(tx));
  const rows = sql
    .exec<CostRow>(
      `SELECT admitted_at, state, shortfall, charged, prompt_tokens, completion_tokens, detail, names.text AS sold
      FROM requests JOIN names ON names.number = requests.sold
      WHERE id >= ?1 AND id < ?2 AND admitted_at >= ?3 AND admitted_at < ?4 AND state IN ('settled', 'voided')
        AND (?5 IS NULL OR names.text ->> '$.model' = ?5) ORDER BY id DESC LIMIT ?6`,
      lowestHoldIdSince(fromMs),
      holdIdBound(query.beforeMs),
      fromMs,
      query.beforeMs,
      query.model,
      ROWS_MAX,
    )
    .toArray();
  const groups = new Map<string, CostGroup>();
  let lessMicro = 0;
  let requests = 0;
  for (const row of rows) {
    const isAbsorbed = row.state === "voided";
    const { bought, ...sold } = parseSharedChargeFields(row);
    const { usage, failed = [] } = isAbsorbed
      ? { usage: NO_USAGE, failed: parseFailedAttempts(row.detail) }
      : parseGeneration(row);
    const { day } = periodOf(row.admitted_at);
    const group = findOrAddGroup(groups, { day, group: sold[query.by] });
    group.requests += 1;
    group.chargedMicro += row.charged;
    if (bought === undefined) group.unknown += 1;
    else group.boughtMicro += isAbsorbed ? row.shortfall : computeCost(bought, usage);
    addOtherFailedCalls(groups, failed, { day, by: query.by });
    const less = query.price === null ? 0 : row.charged - computeCost(query.price, usage);
    if (less <= 0) continue;
    lessMicro += less;
    requests += 1;
  }
  const oldest = rows.length === ROWS_MAX ? rows.at(-1)?.admitted_at : undefined;
  const data = [...groups.values()];
  const completeFrom = Math.max(oldest ?? fromMs, findLastLossMs(sql));
  return { data, lessMicro: micros(lessMicro), requests, completeFrom };
}

function addOtherFailedCalls(
  groups: Map<string, CostGroup>,
  failed: readonly FailedAttempt[],
  { day, by }: Pick<CostQuery, "by"> & { readonly day: string },
): void {
  for (const { route, lost } of failed) {
    if (lost === undefined) continue;
    const provider = route.slice(0, route.indexOf(":"));
    const group = findOrAddGroup(groups, { day, group: by === "model" ? lost.model : provider });
    group.requests += 1;
    if (lost.cost === null) group.unknown += 1;
    else group.boughtMicro += lost.cost;
  }
}

function findOrAddGroup(
  groups: Map<string, CostGroup>,
  { day, group }: Pick<CostGroup, "day" | "group">,
): CostGroup {
  const name = `${day} ${group}`;
  const known = groups.get(name);
  if (known !== undefined) return known;
  const fresh = { day, group, requests: 0, chargedMicro: 0, boughtMicro: 0, unknown: 0 };
  groups.set(name, fresh);
  return fresh;
}
