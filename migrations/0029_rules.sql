-- Published by each wallet: policies of an organization and its members.
CREATE TABLE rules (
  org_id TEXT NOT NULL,
  name TEXT NOT NULL, -- of a policy: operator, organization or a member's id
  rule TEXT CHECK (json_valid(rule)), -- null: removed
  seq INTEGER NOT NULL,
  PRIMARY KEY (org_id, name)
) STRICT, WITHOUT ROWID;
