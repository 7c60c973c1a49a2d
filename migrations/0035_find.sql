-- Indexes of `GET /admin/v1/find`, the operators' search.
CREATE INDEX keys_by_prefix ON keys (prefix);
CREATE INDEX members_by_email ON members (lower(email));
CREATE INDEX invitations_by_email ON invitations (lower(email)) WHERE email IS NOT NULL;
CREATE INDEX credits_by_reference ON credits (reference);

-- Purchases of all organizations, published by their objects, for the operators' lists and search.
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
) STRICT, WITHOUT ROWID;
CREATE INDEX operator_events_by_organization ON operator_events (org_id, id) WHERE org_id IS NOT NULL;
