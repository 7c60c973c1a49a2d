-- The book: this region's D1. Times are Unix milliseconds, money whole micros (1,000,000 = 1 dollar).
-- A migration that was ever applied to a deployed book stays as it is; what is new is the next file.

-- ---------------------------------------------------------------- written by D1 alone

-- Who pays. `status` is 'active' or 'suspended'.
CREATE TABLE organizations (
  id TEXT PRIMARY KEY NOT NULL, -- UUID
  name TEXT NOT NULL,
  slug TEXT NOT NULL UNIQUE, -- 3-32 of a-z 0-9 -, unique in this region
  region TEXT NOT NULL, -- this book's own
  is_personal INTEGER NOT NULL DEFAULT 0 CHECK (is_personal IN (0, 1)),
  status TEXT NOT NULL DEFAULT 'active',
  rpm_limit INTEGER CHECK (rpm_limit > 0), -- the organisation's own limit on paid calls; null: none
  used_at INTEGER NOT NULL DEFAULT 0, -- last time its wallet published: whom the cron pokes
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Whom a key acts as. A removed member keeps its row: its keys are revoked in the same batch.
CREATE TABLE members (
  id TEXT PRIMARY KEY NOT NULL, -- UUID
  org_id TEXT NOT NULL REFERENCES organizations (id),
  email TEXT NOT NULL,
  role TEXT NOT NULL, -- owner, admin, billing, member
  created_at INTEGER NOT NULL,
  removed_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_organization ON members (org_id, created_at);

-- API keys. The key itself is never stored: `hash` is its HMAC and names its register.
CREATE TABLE keys (
  id TEXT PRIMARY KEY NOT NULL, -- key_ + 24
  hash TEXT NOT NULL UNIQUE,
  org_id TEXT NOT NULL REFERENCES organizations (id),
  member_id TEXT NOT NULL REFERENCES members (id),
  name TEXT NOT NULL,
  prefix TEXT NOT NULL, -- what lists show: scope prefix and 4 characters
  scope TEXT NOT NULL CHECK (scope IN ('regional', 'global')),
  rpm_limit INTEGER NOT NULL CHECK (rpm_limit BETWEEN 1 AND 1000),
  created_at INTEGER NOT NULL,
  last_used_at INTEGER, -- at most a minute late, never backwards
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_organization ON keys (org_id, created_at);
-- What a new key counts and a list shows: the live ones, however many were revoked.
CREATE INDEX live_keys_by_organization ON keys (org_id) WHERE revoked_at IS NULL;
-- Pages of revoked ones, newest first: an organisation's, and one member's.
CREATE INDEX revoked_keys_by_organization ON keys (org_id, created_at, id)
  WHERE revoked_at IS NOT NULL;
CREATE INDEX revoked_keys_by_member ON keys (member_id, created_at, id)
  WHERE revoked_at IS NOT NULL;

-- Which key an Idempotency-Key of POST /v1/keys made; gone a day later. Hashes, nothing that can be read.
CREATE TABLE idempotency_keys (
  key_id TEXT NOT NULL, -- the key that asked
  name TEXT NOT NULL, -- hash of key_id and the Idempotency-Key
  body TEXT NOT NULL, -- hash of organisation, path and body
  made_key_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (key_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- What a key may do beyond its requests a minute; a key without a row has no such limit. Null: no limit.
CREATE TABLE key_terms (
  key_id TEXT PRIMARY KEY NOT NULL REFERENCES keys (id),
  org_id TEXT NOT NULL,
  budget_micro INTEGER CHECK (budget_micro >= 0), -- may be spent in each period
  budget_period TEXT, -- day, week, month; null with a budget: for good
  tpm_limit INTEGER CHECK (tpm_limit > 0), -- tokens in any 60 s
  allowed_models TEXT CHECK (json_valid(allowed_models)), -- array of ids, aliases and maker/*
  end_user TEXT CHECK (end_user <> ''), -- external id
  expires_at INTEGER,
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX key_terms_by_organization ON key_terms (org_id);
CREATE INDEX key_terms_by_expiry ON key_terms (expires_at) WHERE expires_at IS NOT NULL;

-- Where an organisation's events are sent.
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY NOT NULL, -- whk_ + 24
  org_id TEXT NOT NULL REFERENCES organizations (id),
  url TEXT NOT NULL,
  types TEXT CHECK (json_valid(types)), -- array of event types; null: all
  secrets TEXT NOT NULL CHECK (json_valid(secrets)), -- encrypted under KEY_SECRETS, the newest first
  disabled_reason TEXT, -- null: it is on
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL -- only grows
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_by_organization ON webhooks (org_id, created_at, id);

-- What was changed here, until the organisation's wallet has it in its log. Inserted in the batch of the change.
CREATE TABLE events (
  id TEXT PRIMARY KEY NOT NULL, -- evt_ + 24
  org_id TEXT NOT NULL,
  type TEXT NOT NULL,
  actor_kind TEXT NOT NULL, -- key, session, operator, system
  actor_id TEXT,
  subject TEXT NOT NULL,
  data TEXT NOT NULL CHECK (json_valid(data)),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_organization ON events (org_id, created_at, id);

-- The secrets of the keys that were ever rotated, their first ones too. No text of a key: later secrets are
-- derived from what stands here, under a secret of the deployment.
CREATE TABLE key_secrets (
  key_id TEXT NOT NULL REFERENCES keys (id),
  number INTEGER NOT NULL CHECK (number >= 0), -- 0: its first
  hash TEXT NOT NULL,
  retires_at INTEGER, -- null: the newest; gone a day later
  name TEXT, -- hash of the Idempotency-Key that made it; null: the first
  body TEXT,
  signed_by TEXT, -- which of the deployment's secrets it is derived under
  created_at INTEGER NOT NULL,
  PRIMARY KEY (key_id, number)
) STRICT, WITHOUT ROWID;

-- Where a round that takes several runs goes on: of the hourly sweep the organisation poked last.
CREATE TABLE cursors (
  name TEXT PRIMARY KEY NOT NULL,
  after TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------- published by each wallet
-- Absolute values under a `seq` that only grows: a repeat, a reorder or an older copy does no harm.

-- The organisation's balance. `epoch` is random and made with the wallet; another epoch or a higher
-- `seq` than the wallet's own means that a wallet was lost or moved, and holds are refused.
CREATE TABLE balances (
  org_id TEXT PRIMARY KEY NOT NULL,
  epoch TEXT NOT NULL,
  seq INTEGER NOT NULL,
  credits_micro INTEGER NOT NULL CHECK (credits_micro >= 0),
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Customers of the organisations. A quota of null is no cap, 0 blocks. Spend is that of `day`/`month`.
CREATE TABLE end_users (
  org_id TEXT NOT NULL,
  id TEXT NOT NULL, -- UUID; a re-created end user has a new one
  external_id TEXT NOT NULL,
  monthly_quota_micro INTEGER,
  daily_quota_micro INTEGER,
  alert_threshold REAL NOT NULL,
  month TEXT NOT NULL, -- YYYY-MM, UTC
  monthly_spend_micro INTEGER NOT NULL,
  day TEXT NOT NULL, -- YYYY-MM-DD, UTC
  daily_spend_micro INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (org_id, id)
) STRICT, WITHOUT ROWID;

-- What the keys with a budget have spent: in all, and in the newest day, week and month of each.
CREATE TABLE key_spend (
  org_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  day TEXT NOT NULL, -- YYYY-MM-DD, UTC
  daily_spend_micro INTEGER NOT NULL,
  week TEXT NOT NULL, -- its Monday, YYYY-MM-DD, UTC
  weekly_spend_micro INTEGER NOT NULL,
  month TEXT NOT NULL, -- YYYY-MM, UTC
  monthly_spend_micro INTEGER NOT NULL,
  total_spend_micro INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (org_id, key_id)
) STRICT, WITHOUT ROWID;

-- Defaults for end users seen later, and the low-balance threshold.
CREATE TABLE settings (
  org_id TEXT PRIMARY KEY NOT NULL,
  default_user_monthly_quota_micro INTEGER,
  default_user_daily_quota_micro INTEGER,
  default_alert_threshold REAL NOT NULL,
  low_balance_threshold_micro INTEGER,
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What an organisation used on one UTC day.
CREATE TABLE daily_usage (
  org_id TEXT NOT NULL,
  day TEXT NOT NULL, -- YYYY-MM-DD, UTC day of admission
  requests INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  cost_micro INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (org_id, day)
) STRICT, WITHOUT ROWID;

-- Crossings of a quota's threshold and falls below the low-balance threshold, once per crossing.
CREATE TABLE alerts (
  org_id TEXT NOT NULL,
  id TEXT NOT NULL, -- alert_ + 24
  kind TEXT NOT NULL, -- user_daily, user_monthly, low_balance
  external_id TEXT,
  period TEXT, -- YYYY-MM-DD or YYYY-MM; null for the balance
  threshold REAL,
  limit_micro INTEGER NOT NULL,
  value_micro INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (org_id, id)
) STRICT, WITHOUT ROWID;
