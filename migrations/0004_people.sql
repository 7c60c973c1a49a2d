-- Humans of this region. Nothing here ever selects one by an address: `identities` says who is who.

-- A human. Erased: name and address are gone, the id stays where it stands.
CREATE TABLE people (
  id TEXT PRIMARY KEY NOT NULL, -- per_ + 24
  name TEXT NOT NULL, -- to show, as the issuer said it last
  email TEXT, -- to show, and what an invitation is compared with; null: the issuer told none
  is_email_proven INTEGER NOT NULL CHECK (is_email_proven IN (0, 1)), -- the issuer says that it is theirs
  sessions_from INTEGER NOT NULL, -- sessions that began before are over
  created_at INTEGER NOT NULL,
  erased_at INTEGER
) STRICT, WITHOUT ROWID;

-- Proofs of a person: what an issuer calls them, to the letter.
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

-- Which members are persons; the others have keys alone.
CREATE TABLE member_people (
  member_id TEXT PRIMARY KEY NOT NULL REFERENCES members (id),
  org_id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (id),
  came_by TEXT NOT NULL, -- sign_up, invitation
  seen_at INTEGER NOT NULL, -- the last log-in as this member
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX member_people_by_person ON member_people (person_id);

-- The one personal organisation of a person, also after it was made a team.
CREATE TABLE personal_organizations (
  person_id TEXT PRIMARY KEY NOT NULL REFERENCES people (id),
  org_id TEXT NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

-- The key by which a person's member acts in the console: nobody ever had its text, no list shows it.
-- Null: a key like any other.
ALTER TABLE keys ADD COLUMN is_console INTEGER;
CREATE UNIQUE INDEX console_key_of_member ON keys (member_id)
  WHERE is_console = 1 AND revoked_at IS NULL;

-- Who may join. The link carries a tag of the id; no secret is kept.
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

-- Sign-ups of the last day, by an HMAC of the network address: what their pace is counted from.
CREATE TABLE sign_ups (
  id TEXT PRIMARY KEY NOT NULL, -- sup_ + 24
  address TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_ups_by_time ON sign_ups (at);

-- First credits, once an identity for good: an HMAC of it outlives the person.
CREATE TABLE promotions (
  identity TEXT PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL,
  amount_micro INTEGER NOT NULL CHECK (amount_micro > 0),
  created_at INTEGER NOT NULL,
  credited_at INTEGER -- null: its wallet has not said yes
) STRICT, WITHOUT ROWID;
CREATE INDEX promotions_by_time ON promotions (created_at);

-- Organisations that are over: suspended for good, without members; their ledger stays.
CREATE TABLE closed_organizations (
  org_id TEXT PRIMARY KEY NOT NULL REFERENCES organizations (id),
  closed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
