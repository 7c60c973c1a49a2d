-- What is sold for how much, from when on. A row is never changed: what is new is another row.
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

-- The list of an organisation's own; null: the region's alone.
ALTER TABLE organizations ADD COLUMN price_list TEXT;
CREATE INDEX organizations_by_price_list ON organizations (price_list) WHERE price_list IS NOT NULL;

-- What a provider billed of a day, as its bill says.
CREATE TABLE provider_bills (
  provider TEXT NOT NULL,
  day TEXT NOT NULL, -- YYYY-MM-DD, UTC
  billed_micro INTEGER NOT NULL CHECK (billed_micro >= 0),
  imported_by TEXT NOT NULL, -- an operator's name
  imported_at INTEGER NOT NULL,
  PRIMARY KEY (provider, day)
) STRICT, WITHOUT ROWID;
