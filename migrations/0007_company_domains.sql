-- Domains by which a company's people find their organisation and may join it. Proven by one organisation at a time.
CREATE TABLE company_domains (
  domain TEXT NOT NULL, -- lower case, exact: no subdomain of it
  org_id TEXT NOT NULL,
  nonce TEXT NOT NULL, -- what its TXT record must say
  tenant TEXT, -- the Entra tenant of the owner who named it, at an address of this domain; null: none
  created_at INTEGER NOT NULL,
  proven_at INTEGER,
  approved_at INTEGER, -- an operator's yes, where that is wanted
  checked_at INTEGER,
  failed_since INTEGER, -- the record is gone: after a week nobody joins by it
  PRIMARY KEY (domain, org_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX proven_company_domain ON company_domains (domain) WHERE proven_at IS NOT NULL;
CREATE INDEX company_domains_by_organization ON company_domains (org_id);
