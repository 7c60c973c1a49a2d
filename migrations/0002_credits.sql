-- Published by each wallet: its credits and corrections, by the reference that each counts once for, so that a wallet
-- that is made again from the book knows them. A row never changes.
CREATE TABLE credits (
  org_id TEXT NOT NULL,
  reference TEXT NOT NULL,
  amount_micro INTEGER NOT NULL, -- below 0: a correction
  balance_micro INTEGER NOT NULL, -- what it answered, as the next two
  held_micro INTEGER NOT NULL,
  open_holds INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (org_id, reference)
) STRICT, WITHOUT ROWID;
