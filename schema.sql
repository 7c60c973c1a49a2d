-- The schema of each region's D1 database after all migrations.
-- Generated: change it with a new file in migrations/, then run `npm run schema`.

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
, price_list TEXT) STRICT, WITHOUT ROWID;
CREATE INDEX organizations_by_price_list ON organizations (price_list) WHERE price_list IS NOT NULL;

CREATE TABLE members (
  id TEXT PRIMARY KEY NOT NULL, -- UUID
  org_id TEXT NOT NULL REFERENCES organizations (id),
  email TEXT NOT NULL,
  role TEXT NOT NULL, -- owner, admin, billing, member
  created_at INTEGER NOT NULL,
  removed_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_organization ON members (org_id, created_at);

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
, is_console INTEGER) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_organization ON keys (org_id, created_at);
CREATE INDEX live_keys_by_organization ON keys (org_id) WHERE revoked_at IS NULL;
CREATE INDEX revoked_keys_by_organization ON keys (org_id, created_at, id)
  WHERE revoked_at IS NOT NULL;
CREATE INDEX revoked_keys_by_member ON keys (member_id, created_at, id)
  WHERE revoked_at IS NOT NULL;
CREATE UNIQUE INDEX console_key_of_member ON keys (member_id)
  WHERE is_console = 1 AND revoked_at IS NULL;

CREATE TABLE idempotency_keys (
  key_id TEXT NOT NULL, -- the key that asked
  name TEXT NOT NULL, -- hash of key_id and the Idempotency-Key
  body TEXT NOT NULL, -- hash of organisation, path and body
  made_key_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (key_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

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
, more TEXT) STRICT, WITHOUT ROWID;
CREATE INDEX key_terms_by_organization ON key_terms (org_id);
CREATE INDEX key_terms_by_expiry ON key_terms (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE webhooks (
  id TEXT PRIMARY KEY NOT NULL, -- whk_ + 24
  org_id TEXT NOT NULL REFERENCES organizations (id),
  url TEXT NOT NULL,
  types TEXT CHECK (json_valid(types)), -- array of event types; null: all
  secrets TEXT NOT NULL CHECK (json_valid(secrets)), -- encrypted under KEY_SECRETS, the newest first
  disabled_reason TEXT, -- null: it is on
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL -- only grows
, format TEXT) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_by_organization ON webhooks (org_id, created_at, id);

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

CREATE TABLE cursors (
  name TEXT PRIMARY KEY NOT NULL,
  after TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE balances (
  org_id TEXT PRIMARY KEY NOT NULL,
  epoch TEXT NOT NULL,
  seq INTEGER NOT NULL,
  credits_micro INTEGER NOT NULL CHECK (credits_micro >= 0),
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE TABLE settings (
  org_id TEXT PRIMARY KEY NOT NULL,
  default_user_monthly_quota_micro INTEGER,
  default_user_daily_quota_micro INTEGER,
  default_alert_threshold REAL NOT NULL,
  low_balance_threshold_micro INTEGER,
  seq INTEGER NOT NULL
, keep_responses_hours INTEGER, auto_top_up TEXT CHECK (json_valid(auto_top_up)), tag_keys TEXT) STRICT, WITHOUT ROWID;

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

CREATE TABLE people (
  id TEXT PRIMARY KEY NOT NULL, -- per_ + 24
  name TEXT NOT NULL, -- to show, as the issuer said it last
  email TEXT, -- to show, and what an invitation is compared with; null: the issuer told none
  is_email_proven INTEGER NOT NULL CHECK (is_email_proven IN (0, 1)), -- the issuer says that it is theirs
  sessions_from INTEGER NOT NULL, -- sessions that began before are over
  created_at INTEGER NOT NULL,
  erased_at INTEGER
, exported_at INTEGER) STRICT, WITHOUT ROWID;

CREATE TABLE identities (
  realm TEXT NOT NULL, -- '': the operator's issuers; an organisation's id: its own, which opens nothing else
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id),
  created_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (realm, issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX identities_by_person ON identities (person_id);

CREATE TABLE member_people (
  member_id TEXT PRIMARY KEY NOT NULL REFERENCES members (id),
  org_id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id),
  came_by TEXT NOT NULL, -- sign_up, invitation
  seen_at INTEGER NOT NULL, -- the last log-in as this member
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX member_people_by_person ON member_people (person_id);

CREATE TABLE personal_organizations (
  person_id TEXT PRIMARY KEY NOT NULL REFERENCES people (id),
  org_id TEXT NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

CREATE TABLE invitations (
  id TEXT PRIMARY KEY NOT NULL, -- inv_ + 24
  org_id TEXT NOT NULL,
  role TEXT NOT NULL,
  email TEXT, -- whose proven address it must be; null: whoever has the link
  member_id TEXT, -- the member that gets a log-in; null: a new one
  invited_by TEXT, -- a member's id; null: an operator
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  accepted_at INTEGER,
  accepted_by TEXT, -- the member's id
  ended_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX invitations_by_organization ON invitations (org_id, created_at);
CREATE INDEX invitations_by_inviter ON invitations (invited_by)
  WHERE accepted_at IS NULL AND ended_at IS NULL;

CREATE TABLE sign_ups (
  id TEXT PRIMARY KEY NOT NULL, -- sup_ + 24
  address TEXT NOT NULL,
  at INTEGER NOT NULL
, identity TEXT) STRICT, WITHOUT ROWID;
CREATE INDEX sign_ups_by_time ON sign_ups (at);

CREATE TABLE promotions (
  identity TEXT PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL,
  amount_micro INTEGER NOT NULL CHECK (amount_micro > 0),
  created_at INTEGER NOT NULL,
  credited_at INTEGER -- null: its wallet has not said yes
) STRICT, WITHOUT ROWID;
CREATE INDEX promotions_by_time ON promotions (created_at);

CREATE TABLE closed_organizations (
  org_id TEXT PRIMARY KEY NOT NULL REFERENCES organizations (id),
  closed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE prices (
  id TEXT PRIMARY KEY NOT NULL, -- prc_ + 24
  list TEXT NOT NULL, -- 'default': the region's, behind each organisation's own
  item TEXT NOT NULL, -- a model's id, maker/*, *
  from_at INTEGER NOT NULL,
  price TEXT CHECK (json_valid(price)), -- micros per million: input, cached, cache_write, output, and units
  percent INTEGER CHECK (percent >= 0), -- on the provider's list price
  posted_by TEXT NOT NULL, -- an operator's name
  created_at INTEGER NOT NULL,
  CHECK ((price IS NULL) <> (percent IS NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX prices_by_list ON prices (list, item, from_at);

CREATE TABLE provider_bills (
  provider TEXT NOT NULL,
  day TEXT NOT NULL, -- YYYY-MM-DD, UTC
  billed_micro INTEGER NOT NULL CHECK (billed_micro >= 0),
  imported_by TEXT NOT NULL, -- an operator's name
  imported_at INTEGER NOT NULL,
  PRIMARY KEY (provider, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE stripe_customers (
  customer_id TEXT PRIMARY KEY NOT NULL, -- cus_...
  org_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE card_fingerprints (
  fingerprint TEXT NOT NULL,
  org_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (fingerprint, org_id)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE debts (
  org_id TEXT PRIMARY KEY NOT NULL,
  owed_micro INTEGER NOT NULL CHECK (owed_micro >= 0),
  taken_micro INTEGER NOT NULL CHECK (taken_micro >= 0),
  forgiven_micro INTEGER NOT NULL CHECK (forgiven_micro >= 0),
  forgiven_by TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(forgiven_by)), -- what was forgiven by each reference
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE company_domains (
  domain TEXT NOT NULL, -- lower case, exact: no subdomain of it
  org_id TEXT NOT NULL,
  nonce TEXT NOT NULL, -- what its TXT record must say
  tenant TEXT, -- the Entra tenant of the owner who named it, at an address of this domain; null: none
  created_at INTEGER NOT NULL,
  proven_at INTEGER,
  approved_at INTEGER, -- an operator's yes, where that is wanted
  checked_at INTEGER,
  failed_since INTEGER, -- the record is gone: after a week nobody joins by it
  PRIMARY KEY (domain, org_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX proven_company_domain ON company_domains (domain) WHERE proven_at IS NOT NULL;
CREATE INDEX company_domains_by_organization ON company_domains (org_id);

CREATE TABLE company_issuers (
  org_id TEXT PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE, -- iss_ + 24, another one whenever it is set anew
  issuer TEXT NOT NULL, -- to the letter
  client_id TEXT NOT NULL,
  client_secret TEXT NOT NULL, -- sealed under KEY_SECRETS, bound to the organisation and the id
  created_at INTEGER NOT NULL,
  tried_at INTEGER, -- an owner has come in by it; null: a draft, which lets nobody in
  required_at INTEGER -- nobody acts in the organisation but who came in by it; null: by any log-in
) STRICT, WITHOUT ROWID;

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

CREATE TABLE merchants (
  name TEXT PRIMARY KEY NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE, -- SHA-256 of its current secret
  created_at INTEGER NOT NULL,
  rotated_at INTEGER, -- when its secret last changed
  created_by TEXT NOT NULL -- the operator
) STRICT, WITHOUT ROWID;

CREATE TABLE notification_preferences (
  member_id TEXT PRIMARY KEY NOT NULL REFERENCES members (id),
  types TEXT NOT NULL CHECK (json_valid(types)), -- array of event types
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
