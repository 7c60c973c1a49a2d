-- The amounts, limits and reasons of an operator's change.
ALTER TABLE operator_events ADD COLUMN details TEXT CHECK (json_valid(details)); -- null: none, or an event of an earlier release
