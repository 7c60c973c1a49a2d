-- Settings of a webhook that sends usage to a billing or tracing service, and its encrypted credential.
ALTER TABLE webhooks ADD COLUMN receiver TEXT CHECK (json_valid(receiver)); -- null: sends events
