-- The schema of each region's D1 database after all migrations.
-- Generated: change it with a new file in migrations/, then run `npm run schema`.

CREATE TABLE organizations ( -- customers
  id TEXT PRIMARY KEY NOT NULL, -- UUID
  name TEXT NOT NULL,
  slug TEXT NOT NULL UNIQUE, -- 3 to 32 of a-z, 0-9 and -
  region TEXT NOT NULL, -- the region of this database
  is_personal INTEGER NOT NULL DEFAULT 0 CHECK (is_personal IN (0, 1)),
  status TEXT NOT NULL DEFAULT 'active', -- active, suspended
  rpm_limit INTEGER CHECK (rpm_limit > 0), -- paid requests per minute; null: unlimited
  used_at INTEGER NOT NULL DEFAULT 0, -- the last publish of its wallet
  created_at INTEGER NOT NULL,
  price_list TEXT -- null: only the region's default list
) STRICT, WITHOUT ROWID;
CREATE INDEX organizations_by_price_list ON organizations (price_list) WHERE price_list IS NOT NULL;

CREATE TABLE closed_organizations ( -- suspended for good, without members; the ledger stays
  org_id TEXT PRIMARY KEY NOT NULL REFERENCES organizations (id),
  closed_at INTEGER NOT NULL
, restorable_until INTEGER, status TEXT, closed_by TEXT) STRICT, WITHOUT ROWID;
CREATE INDEX closed_organizations_by_removal ON closed_organizations (restorable_until)
  WHERE restorable_until IS NOT NULL;

CREATE TABLE members ( -- owners of keys; a removed member keeps its row
  id TEXT PRIMARY KEY NOT NULL, -- UUID
  org_id TEXT NOT NULL REFERENCES organizations (id),
  email TEXT NOT NULL,
  role TEXT NOT NULL, -- owner, admin, billing, member
  created_at INTEGER NOT NULL,
  removed_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_organization ON members (org_id, created_at);
CREATE INDEX members_by_email ON members (lower(email));

CREATE TABLE keys ( -- API keys, without their text
  id TEXT PRIMARY KEY NOT NULL, -- key_ and 24 characters
  hash TEXT NOT NULL UNIQUE, -- HMAC of the key, also the name of its register
  org_id TEXT NOT NULL REFERENCES organizations (id),
  member_id TEXT NOT NULL REFERENCES members (id),
  name TEXT NOT NULL,
  prefix TEXT NOT NULL, -- scope prefix and 4 characters, for lists
  scope TEXT NOT NULL CHECK (scope IN ('regional', 'global')),
  rpm_limit INTEGER NOT NULL CHECK (rpm_limit BETWEEN 1 AND 1000),
  created_at INTEGER NOT NULL,
  last_used_at INTEGER, -- at most a minute late
  revoked_at INTEGER,
  is_console INTEGER -- 1: a person's session in the console uses it, and no list shows it; null: other keys
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_organization ON keys (org_id, created_at);
CREATE INDEX live_keys_by_organization ON keys (org_id) WHERE revoked_at IS NULL;
CREATE INDEX revoked_keys_by_organization ON keys (org_id, created_at, id)
  WHERE revoked_at IS NOT NULL;
CREATE INDEX revoked_keys_by_member ON keys (member_id, created_at, id)
  WHERE revoked_at IS NOT NULL;
CREATE UNIQUE INDEX console_key_of_member ON keys (member_id)
  WHERE is_console = 1 AND revoked_at IS NULL;
CREATE INDEX keys_by_prefix ON keys (prefix);

CREATE TABLE idempotency_keys ( -- of POST /v1/keys, for a day
  key_id TEXT NOT NULL, -- the caller's key
  name TEXT NOT NULL, -- hash of key_id and the Idempotency-Key
  body TEXT NOT NULL, -- hash of organization, path and body
  made_key_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (key_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE key_terms ( -- limits of keys; null: no such limit
  key_id TEXT PRIMARY KEY NOT NULL REFERENCES keys (id),
  org_id TEXT NOT NULL,
  budget_micro INTEGER CHECK (budget_micro >= 0), -- per period
  budget_period TEXT, -- day, week, month; null with a budget: in total
  tpm_limit INTEGER CHECK (tpm_limit > 0), -- tokens in any 60 seconds
  allowed_models TEXT CHECK (json_valid(allowed_models)), -- array of ids, aliases and maker/*
  end_user TEXT CHECK (end_user <> ''), -- external id
  expires_at INTEGER,
  changed_at INTEGER NOT NULL,
  more TEXT -- JSON object of the limits without a column
) STRICT, WITHOUT ROWID;
CREATE INDEX key_terms_by_organization ON key_terms (org_id);
CREATE INDEX key_terms_by_expiry ON key_terms (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE key_secrets ( -- all secrets of rotated keys, without their text
  key_id TEXT NOT NULL REFERENCES keys (id),
  number INTEGER NOT NULL CHECK (number >= 0), -- 0: the first
  hash TEXT NOT NULL,
  retires_at INTEGER, -- null: the newest; deleted a day later
  name TEXT, -- hash of the Idempotency-Key of its rotation; null: the first secret
  body TEXT,
  signed_by TEXT, -- the deployment's secret that it is derived from
  created_at INTEGER NOT NULL,
  PRIMARY KEY (key_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhooks (
  id TEXT PRIMARY KEY NOT NULL, -- whk_ and 24 characters
  org_id TEXT NOT NULL REFERENCES organizations (id),
  url TEXT NOT NULL,
  types TEXT CHECK (json_valid(types)), -- array of event types; null: all
  secrets TEXT NOT NULL CHECK (json_valid(secrets)), -- encrypted under KEY_SECRETS, the newest first
  disabled_reason TEXT, -- null: enabled
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL, -- only rises
  format TEXT -- slack; null: the event as JSON
, receiver TEXT CHECK (json_valid(receiver))) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_by_organization ON webhooks (org_id, created_at, id);

CREATE TABLE events ( -- pending until the organization's wallet has logged them
  id TEXT PRIMARY KEY NOT NULL, -- evt_ and 24 characters
  org_id TEXT NOT NULL,
  type TEXT NOT NULL,
  actor_kind TEXT NOT NULL, -- key, session, operator, system
  actor_id TEXT,
  subject TEXT NOT NULL,
  data TEXT NOT NULL CHECK (json_valid(data)),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_organization ON events (org_id, created_at, id);

CREATE TABLE cursors ( -- positions of sweeps that take several runs
  name TEXT PRIMARY KEY NOT NULL,
  after TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE prices ( -- a row never changes; a new price is a new row
  id TEXT PRIMARY KEY NOT NULL, -- prc_ and 24 characters
  list TEXT NOT NULL, -- default: the region's list, which applies after an organization's own
  item TEXT NOT NULL, -- a model's id, maker/*, *
  from_at INTEGER NOT NULL,
  price TEXT CHECK (json_valid(price)), -- micro-credits per million: input, cached, cache_write, output and units
  percent INTEGER CHECK (percent >= 0), -- of the provider's list price
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

CREATE TABLE merchants ( -- the operator's services that capture customers' holds
  name TEXT PRIMARY KEY NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE, -- SHA-256 of the current secret
  created_at INTEGER NOT NULL,
  rotated_at INTEGER,
  created_by TEXT NOT NULL -- an operator's name
) STRICT, WITHOUT ROWID;

CREATE TABLE stripe_customers ( -- written before a payment can name the customer
  customer_id TEXT PRIMARY KEY NOT NULL, -- cus_...
  org_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE card_fingerprints ( -- Stripe's fingerprints of the cards that paid; no card numbers
  fingerprint TEXT NOT NULL,
  org_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (fingerprint, org_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE people ( -- an erased person keeps its row without name and address
  id TEXT PRIMARY KEY NOT NULL, -- per_ and 24 characters
  name TEXT NOT NULL, -- from the newest login
  email TEXT, -- shown, and compared with invitations; null: unknown
  is_email_proven INTEGER NOT NULL CHECK (is_email_proven IN (0, 1)), -- the issuer has verified it
  sessions_from INTEGER NOT NULL, -- earlier sessions are over
  created_at INTEGER NOT NULL,
  erased_at INTEGER,
  exported_at INTEGER -- the last export of their data
) STRICT, WITHOUT ROWID;

CREATE TABLE identities ( -- logins of a person, as the issuer writes them
  realm TEXT NOT NULL, -- '': the operator's issuers; an organization's id: only that organization's issuer
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id),
  created_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (realm, issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX identities_by_person ON identities (person_id);

CREATE TABLE member_people ( -- members who are persons; other members only have keys
  member_id TEXT PRIMARY KEY NOT NULL REFERENCES members (id),
  org_id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id),
  came_by TEXT NOT NULL, -- sign_up, invitation
  seen_at INTEGER NOT NULL, -- the last login as this member
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX member_people_by_person ON member_people (person_id);

CREATE TABLE personal_organizations ( -- at most one per person, also after it became a team
  person_id TEXT PRIMARY KEY NOT NULL REFERENCES people (id),
  org_id TEXT NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

CREATE TABLE invitations ( -- the link contains a tag of the id, so no secret is stored
  id TEXT PRIMARY KEY NOT NULL, -- inv_ and 24 characters
  org_id TEXT NOT NULL,
  role TEXT NOT NULL,
  email TEXT, -- the verified address that may accept; null: everyone with the link
  member_id TEXT, -- the member that gets a login; null: a new member
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
CREATE INDEX invitations_by_email ON invitations (lower(email)) WHERE email IS NOT NULL;

CREATE TABLE sign_ups ( -- of the last day, to limit them
  id TEXT PRIMARY KEY NOT NULL, -- sup_ and 24 characters
  address TEXT NOT NULL, -- HMAC of the network address
  at INTEGER NOT NULL,
  identity TEXT -- HMAC; null: another organization of a known person
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_ups_by_time ON sign_ups (at);

CREATE TABLE promotions ( -- first credits, once per identity, also after the person is erased
  identity TEXT PRIMARY KEY NOT NULL, -- HMAC
  org_id TEXT NOT NULL,
  amount_micro INTEGER NOT NULL CHECK (amount_micro > 0),
  created_at INTEGER NOT NULL,
  credited_at INTEGER -- null: the wallet hasn't confirmed the credit
) STRICT, WITHOUT ROWID;
CREATE INDEX promotions_by_time ON promotions (created_at);

CREATE TABLE company_domains ( -- people with these addresses may join; one organization proves a domain
  domain TEXT NOT NULL, -- lower case, without its subdomains
  org_id TEXT NOT NULL,
  nonce TEXT NOT NULL, -- required text of its TXT record
  tenant TEXT, -- Entra tenant of the owner who added it; null: none
  created_at INTEGER NOT NULL,
  proven_at INTEGER,
  approved_at INTEGER, -- by an operator, where the deployment requires it
  checked_at INTEGER,
  failed_since INTEGER, -- the record is missing; after a week nobody joins by it
  PRIMARY KEY (domain, org_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX proven_company_domain ON company_domains (domain) WHERE proven_at IS NOT NULL;
CREATE INDEX company_domains_by_organization ON company_domains (org_id);

CREATE TABLE company_issuers ( -- an organization's own identity provider, valid only in it
  org_id TEXT PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE, -- iss_ and 24 characters, new after each change
  issuer TEXT NOT NULL,
  client_id TEXT NOT NULL,
  client_secret TEXT NOT NULL, -- encrypted under KEY_SECRETS, bound to the organization and the id
  created_at INTEGER NOT NULL,
  tried_at INTEGER, -- first login of an owner; null: a draft that nobody can log in with
  required_at INTEGER -- from then on the only login; null: others are allowed
) STRICT, WITHOUT ROWID;

CREATE TABLE notification_preferences ( -- a member without a row gets every type of their role
  member_id TEXT PRIMARY KEY NOT NULL REFERENCES members (id),
  types TEXT NOT NULL CHECK (json_valid(types)), -- array of event types
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE balances ( -- the wallet refuses holds when it sees another epoch or a higher seq than its own
  org_id TEXT PRIMARY KEY NOT NULL,
  epoch TEXT NOT NULL, -- random, made with the wallet
  seq INTEGER NOT NULL,
  credits_micro INTEGER NOT NULL CHECK (credits_micro >= 0),
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE credits ( -- credits and corrections, so that a rebuilt wallet knows their references
  org_id TEXT NOT NULL,
  reference TEXT NOT NULL,
  amount_micro INTEGER NOT NULL, -- negative: a correction
  balance_micro INTEGER NOT NULL, -- in the first response, like the next two columns
  held_micro INTEGER NOT NULL,
  open_holds INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (org_id, reference)
) STRICT, WITHOUT ROWID;
CREATE INDEX credits_by_reference ON credits (reference);

CREATE TABLE payments (
  org_id TEXT NOT NULL,
  id TEXT NOT NULL, -- pi_...
  purchase_id TEXT NOT NULL,
  credited_micro INTEGER NOT NULL CHECK (credited_micro > 0),
  back_micro INTEGER NOT NULL CHECK (back_micro BETWEEN 0 AND credited_micro), -- refunded or disputed
  reading INTEGER NOT NULL, -- a higher one replaces back_micro
  seq INTEGER NOT NULL,
  PRIMARY KEY (org_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE debts ( -- refunded and disputed amounts that the balance didn't cover
  org_id TEXT PRIMARY KEY NOT NULL,
  owed_micro INTEGER NOT NULL CHECK (owed_micro >= 0),
  taken_micro INTEGER NOT NULL CHECK (taken_micro >= 0),
  forgiven_micro INTEGER NOT NULL CHECK (forgiven_micro >= 0),
  forgiven_by TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(forgiven_by)), -- amount per reference
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE end_users ( -- an organization's own customers; spend is that of `day` and `month`
  org_id TEXT NOT NULL,
  id TEXT NOT NULL, -- UUID, new after a deletion
  external_id TEXT NOT NULL,
  monthly_quota_micro INTEGER, -- null: unlimited; 0: blocked
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

CREATE TABLE key_spend ( -- of keys with a budget, in total and in the newest day, week and month
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

CREATE TABLE budgets ( -- of organizations, members, keys and end users
  org_id TEXT NOT NULL,
  name TEXT NOT NULL, -- scope, subject and id, one per line
  scope TEXT NOT NULL,
  subject TEXT NOT NULL, -- the owner's id, '' for the organization
  id TEXT NOT NULL,
  place INTEGER NOT NULL, -- in its owner's list
  budget TEXT NOT NULL, -- JSON
  since INTEGER NOT NULL, -- counts from this time
  tally TEXT NOT NULL, -- JSON: sums by bucket
  seq INTEGER NOT NULL,
  PRIMARY KEY (org_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
  org_id TEXT PRIMARY KEY NOT NULL,
  default_user_monthly_quota_micro INTEGER, -- of new end users, like the next two columns
  default_user_daily_quota_micro INTEGER,
  default_alert_threshold REAL NOT NULL,
  low_balance_threshold_micro INTEGER,
  seq INTEGER NOT NULL,
  keep_responses_hours INTEGER, -- of /v1/responses; null: not stored
  auto_top_up TEXT CHECK (json_valid(auto_top_up)), -- null: never
  tag_keys TEXT -- JSON array of the tag keys with daily sums
) STRICT, WITHOUT ROWID;

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

CREATE TABLE alerts ( -- one row each time that a threshold is crossed
  org_id TEXT NOT NULL,
  id TEXT NOT NULL, -- alert_ and 24 characters
  kind TEXT NOT NULL, -- user_daily, user_monthly, low_balance
  external_id TEXT,
  period TEXT, -- YYYY-MM-DD or YYYY-MM; null for the balance
  threshold REAL,
  limit_micro INTEGER NOT NULL,
  value_micro INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (org_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE rules (
  org_id TEXT NOT NULL,
  name TEXT NOT NULL, -- of a policy: operator, organization or a member's id
  rule TEXT CHECK (json_valid(rule)), -- null: removed
  seq INTEGER NOT NULL,
  PRIMARY KEY (org_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE purchases (
  id TEXT PRIMARY KEY NOT NULL, -- pur_ and 24 characters, which sort by time
  org_id TEXT NOT NULL,
  state TEXT NOT NULL,
  returned_micro INTEGER NOT NULL, -- refunded or disputed
  session_id TEXT, -- Stripe's IDs, like the next two
  invoice_id TEXT,
  payment_id TEXT,
  record TEXT NOT NULL CHECK (json_valid(record)), -- all of it, without the payment page's address
  updated_at INTEGER NOT NULL -- a row never replaces a newer one
) STRICT, WITHOUT ROWID;
CREATE INDEX purchases_by_organization ON purchases (org_id, id);
CREATE INDEX purchases_by_state ON purchases (state, id);
CREATE INDEX returned_purchases ON purchases (id) WHERE returned_micro > 0;
CREATE INDEX purchases_by_session ON purchases (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX purchases_by_invoice ON purchases (invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX purchases_by_payment ON purchases (payment_id) WHERE payment_id IS NOT NULL;

CREATE TABLE operator_events ( -- changes by operators, deleted after a year
  id TEXT PRIMARY KEY NOT NULL, -- opev_ and 24 characters, which sort by time
  operator TEXT NOT NULL, -- name
  act TEXT NOT NULL, -- method and path of the call
  org_id TEXT, -- null: the region
  target TEXT NOT NULL CHECK (json_valid(target)), -- the other parameters of the path
  request_id TEXT NOT NULL
, details TEXT CHECK (json_valid(details))) STRICT, WITHOUT ROWID;
CREATE INDEX operator_events_by_organization ON operator_events (org_id, id) WHERE org_id IS NOT NULL;
