-- Budgets of organizations, members, keys and end users, with what their wallet has counted in them.
CREATE TABLE budgets (
  org_id TEXT NOT NULL,
  name TEXT NOT NULL, -- scope, subject and id, one per line
  scope TEXT NOT NULL,
  subject TEXT NOT NULL, -- the owner's id, '' for the organization
  id TEXT NOT NULL,
  place INTEGER NOT NULL, -- in its owner's list
  budget TEXT NOT NULL, -- JSON
  since INTEGER NOT NULL, -- counts since this time
  tally TEXT NOT NULL, -- JSON: sums by bucket
  seq INTEGER NOT NULL,
  PRIMARY KEY (org_id, name)
) STRICT, WITHOUT ROWID;
