-- An owner can restore an organization that an owner closed, but not one that an operator closed.
ALTER TABLE closed_organizations ADD COLUMN closed_by TEXT; -- the member; null: an operator, or unknown
