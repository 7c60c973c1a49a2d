-- For how many hours an organisation's answers of /v1/responses are kept; null: 0, nothing is.
ALTER TABLE settings ADD COLUMN keep_responses_hours INTEGER;
