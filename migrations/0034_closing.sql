-- An organization can be restored until a time after its closing.
ALTER TABLE closed_organizations ADD COLUMN restorable_until INTEGER; -- null: removed permanently
ALTER TABLE closed_organizations ADD COLUMN status TEXT; -- of the organization before its closing
CREATE INDEX closed_organizations_by_removal ON closed_organizations (restorable_until)
  WHERE restorable_until IS NOT NULL;
