-- Whose a customer of Stripe's is: written before anything can be paid under it, and kept when a newer one replaces it.
CREATE TABLE stripe_customers (
  customer_id TEXT PRIMARY KEY NOT NULL, -- cus_...
  org_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- With which cards organisations paid, by what Stripe tells them apart by: no number of a card.
CREATE TABLE card_fingerprints (
  fingerprint TEXT NOT NULL,
  org_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (fingerprint, org_id)
) STRICT, WITHOUT ROWID;

-- Published by each wallet: its payments, and what is back of each.
CREATE TABLE payments (
  org_id TEXT NOT NULL,
  id TEXT NOT NULL, -- pi_...
  purchase_id TEXT NOT NULL,
  credited_micro INTEGER NOT NULL CHECK (credited_micro > 0),
  back_micro INTEGER NOT NULL CHECK (back_micro BETWEEN 0 AND credited_micro),
  reading INTEGER NOT NULL, -- a later one replaces back_micro
  seq INTEGER NOT NULL,
  PRIMARY KEY (org_id, id)
) STRICT, WITHOUT ROWID;

-- Published by each wallet that had payments go back: what of that is owed, was taken, is forgiven.
CREATE TABLE debts (
  org_id TEXT PRIMARY KEY NOT NULL,
  owed_micro INTEGER NOT NULL CHECK (owed_micro >= 0),
  taken_micro INTEGER NOT NULL CHECK (taken_micro >= 0),
  forgiven_micro INTEGER NOT NULL CHECK (forgiven_micro >= 0),
  forgiven_by TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(forgiven_by)), -- what was forgiven by each reference
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When credits are bought automatically, as JSON; null: never.
ALTER TABLE settings ADD COLUMN auto_top_up TEXT CHECK (json_valid(auto_top_up));
