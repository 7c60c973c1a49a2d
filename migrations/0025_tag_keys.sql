-- The tag keys with daily sums that an organization declares, as a JSON array; null: none.
ALTER TABLE settings ADD COLUMN tag_keys TEXT;
