import type { Tables } from "../../shared/tables.do.ts";

const FIRST =
  "CREATE TABLE receivers (" +
  "id TEXT PRIMARY KEY NOT NULL," +
  "webhook TEXT NOT NULL," + // JSON, as the book had it last
  "failing_since INTEGER," +
  "failures INTEGER NOT NULL DEFAULT 0," + // attempts since then
  "paused_until INTEGER," + // nothing is sent before; null: it is not paused
  "ending TEXT," +
  "finished INTEGER NOT NULL DEFAULT 0," + // deliveries that ended since old ones were forgotten
  "replay TEXT," + // the last one asked for
  "tests TEXT NOT NULL DEFAULT '[]'" + // when the last ones were made
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE deliveries (" +
  "number INTEGER PRIMARY KEY AUTOINCREMENT," +
  "id TEXT NOT NULL UNIQUE," +
  "webhook_id TEXT NOT NULL," +
  "event_id TEXT NOT NULL," +
  "type TEXT NOT NULL," +
  "body TEXT NOT NULL," +
  "state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed'))," +
  "attempts INTEGER NOT NULL DEFAULT 0," +
  "created_at INTEGER NOT NULL," +
  "replayed INTEGER NOT NULL DEFAULT 0 CHECK (replayed IN (0, 1))," + // as it was queued last
  "next_at INTEGER CHECK ((next_at IS NULL) = (state <> 'pending'))," +
  "last_at INTEGER," +
  "status INTEGER," +
  "error TEXT," +
  "answer TEXT," +
  "duration_ms INTEGER," +
  "UNIQUE (webhook_id, event_id)" +
  ") STRICT;" +
  "CREATE INDEX deliveries_due ON deliveries (webhook_id, next_at, number) WHERE state = 'pending';" +
  "CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, number);";

/**
 * A delivery's attempts (JSON, newest first), the last headers (JSON), and a webhook's health, by hour too
 * (JSON). Null: nothing sent since the column exists.
 */
const SECOND = `ALTER TABLE deliveries ADD COLUMN newest_attempts TEXT;
  ALTER TABLE deliveries ADD COLUMN sent_headers TEXT;
  ALTER TABLE receivers ADD COLUMN last_success_at INTEGER;
  ALTER TABLE receivers ADD COLUMN last_error TEXT;
  ALTER TABLE receivers ADD COLUMN hours TEXT`;

export const DELIVERY_TABLES: Tables = {
  name: "deliveries",
  steps: [
    { sql: FIRST, readableBy: 1 },
    { sql: SECOND, readableBy: 1 },
  ],
};
