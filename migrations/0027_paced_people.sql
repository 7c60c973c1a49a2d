-- When a person last exported their data, and who signed up: both are paced.
ALTER TABLE people ADD COLUMN exported_at INTEGER; -- null: never
ALTER TABLE sign_ups ADD COLUMN identity TEXT; -- an HMAC; null: another organization of a person
