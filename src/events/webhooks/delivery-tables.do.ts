import type { Tables } from "../../shared/tables.do.ts";

/** The tables of webhooks and deliveries. Times are Unix ms. */
export const DELIVERY_TABLES: Tables = {
  name: "deliveries",
  steps: [
    {
      sql:
        "CREATE TABLE receivers (" +
        "id TEXT PRIMARY KEY NOT NULL," +
        "webhook TEXT NOT NULL," + // JSON copy of the D1 row
        "failing_since INTEGER," +
        "failures INTEGER NOT NULL DEFAULT 0," + // failed attempts since the last success
        "paused_until INTEGER," +
        "ending TEXT," +
        "finished INTEGER NOT NULL DEFAULT 0," + // finished deliveries since the last deletion
        "replay TEXT," + // newest replay
        "tests TEXT NOT NULL DEFAULT '[]'," +
        "last_success_at INTEGER," +
        "last_error TEXT," +
        "hours TEXT" +
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
        "replayed INTEGER NOT NULL DEFAULT 0 CHECK (replayed IN (0, 1))," + // 1 if a replay queued it last
        "next_at INTEGER CHECK ((next_at IS NULL) = (state <> 'pending'))," +
        "last_at INTEGER," +
        "status INTEGER," +
        "error TEXT," +
        "answer TEXT," +
        "duration_ms INTEGER," +
        "newest_attempts TEXT," + // newest first
        "sent_headers TEXT," + // headers of the newest attempt
        "UNIQUE (webhook_id, event_id)" +
        ") STRICT;" +
        "CREATE INDEX deliveries_due ON deliveries (webhook_id, next_at, number) WHERE state = 'pending';" +
        "CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, number);",
      readableBy: 1,
    },
    {
      sql: "ALTER TABLE receivers ADD COLUMN stream TEXT",
      readableBy: 1,
    },
  ],
};
