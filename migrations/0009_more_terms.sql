-- Limits of a key that have no column of their own, as one JSON object by their stored names; null: none.
ALTER TABLE key_terms ADD COLUMN more TEXT;
