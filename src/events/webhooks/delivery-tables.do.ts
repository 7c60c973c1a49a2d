import type { Tables } from "../../shared/tables.do.ts";

/** Tables of webhooks and their deliveries. Times are Unix ms. */
export const DELIVERY_TABLES: Tables = {
  name: "deliveries",
  steps: [
    {
      sql:
        "CREATE TABLE receivers (" +
        "id TEXT PRIMARY KEY NOT NULL," +
        "webhook TEXT NOT NULL," + // JSON: the newest copy from D1
        "failing_since INTEGER," +
        "failures INTEGER NOT NULL DEFAULT 0," + // attempts since then
        "paused_until INTEGER," + // nothing is sent before; null: not paused
        "ending TEXT," +
        "finished INTEGER NOT NULL DEFAULT 0," + // deliveries that ended since old ones were deleted
        "replay TEXT," + // the newest replay
        "tests TEXT NOT NULL DEFAULT '[]'," + // times of the newest tests
        "last_success_at INTEGER," +
        "last_error TEXT," +
        "hours TEXT" + // JSON: health by hour; null: nothing was sent
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
        "replayed INTEGER NOT NULL DEFAULT 0 CHECK (replayed IN (0, 1))," + // 1: last queued by a replay
        "next_at INTEGER CHECK ((next_at IS NULL) = (state <> 'pending'))," +
        "last_at INTEGER," +
        "status INTEGER," +
        "error TEXT," +
        "answer TEXT," +
        "duration_ms INTEGER," +
        "newest_attempts TEXT," + // JSON, newest first
        "sent_headers TEXT," + // JSON: headers of the newest attempt
        "UNIQUE (webhook_id, event_id)" +
        ") STRICT;" +
        "CREATE INDEX deliveries_due ON deliveries (webhook_id, next_at, number) WHERE state = 'pending';" +
        "CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, number);",
      readableBy: 1,
    },
    {
      // JSON: the position in the usage stream; null: none
      sql: "ALTER TABLE receivers ADD COLUMN stream TEXT",
      readableBy: 1,
    },
  ],
};
