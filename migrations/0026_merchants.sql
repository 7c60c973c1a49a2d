-- Services of the operator that capture customers' holds, by name.
CREATE TABLE merchants (
  name TEXT PRIMARY KEY NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE, -- SHA-256 of its current secret
  created_at INTEGER NOT NULL,
  rotated_at INTEGER, -- when its secret last changed
  created_by TEXT NOT NULL -- the operator
) STRICT, WITHOUT ROWID;
