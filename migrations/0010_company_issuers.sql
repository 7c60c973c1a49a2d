-- A company's own issuer: who comes by it is in this organisation and nowhere else. One an organisation.
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
