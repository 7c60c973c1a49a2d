-- The emails that a member chose. A member without a row gets every type that their role allows.
CREATE TABLE notification_preferences (
  member_id TEXT PRIMARY KEY NOT NULL REFERENCES members (id),
  types TEXT NOT NULL CHECK (json_valid(types)), -- array of event types
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The format of a webhook's messages: slack; null: the event as JSON.
ALTER TABLE webhooks ADD COLUMN format TEXT;
