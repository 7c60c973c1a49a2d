import { insertRow } from "../../../shared/tables.do.ts";
/**
 * The routes of conversations. A conversation stays on its route while the provider caches its
 * prompt.
 */
export const WARM_ROUTES_TABLE_SQL =
  "CREATE TABLE warm_routes (" +
  "affinity TEXT PRIMARY KEY NOT NULL," +
  "route TEXT NOT NULL," +
  "seconds INTEGER NOT NULL," + // lifetime after each use
  "until INTEGER NOT NULL" +
  ") STRICT, WITHOUT ROWID";

/** A warm route. Each use extends `until` (Unix ms). `stored` is the table's value of `until`. */
export type WarmRouteState = {
  readonly route: string;
  readonly seconds: number;
  readonly until: number;
  readonly stored: number;
};

export function selectWarmRoutes(sql: SqlStorage): Map<string, WarmRouteState> {
  const rows = sql
    .exec<Omit<WarmRouteState, "stored"> & { affinity: string }>(
      "SELECT affinity, route, seconds, until FROM warm_routes ORDER BY until",
    )
    .toArray();
  return new Map(rows.map(({ affinity, ...warm }) => [affinity, { ...warm, stored: warm.until }]));
}

export function putWarmRoute(sql: SqlStorage, affinity: string, warm: WarmRouteState): void {
  const { route, seconds, until } = warm;
  insertRow(sql, "OR REPLACE INTO warm_routes", { affinity, route, seconds, until });
}

export function deleteWarmRoute(sql: SqlStorage, affinity: string): void {
  sql.exec("DELETE FROM warm_routes WHERE affinity = ?", affinity);
}
