/** Groups of commands, in the order in which help lists them. */
export const GROUPS: Readonly<Record<string, string>> = {
  orgs: "organizations: who pays",
  "lost-organizations": "wallets whose organization the database has lost",
  members: "members of an organization, their roles",
  keys: "API keys of an organization",
  credits: "add credits to an organization",
  purchases: "what an organization bought by card",
  sessions: "short-lived tokens of an organization's keys",
  webhooks: "where an organization's events are sent",
  prices: "price lists of the region: what is sold for how much, from when on",
  catalog: "models and their routes: what is sold, and why not",
  invitations: "invitations into an organization, made by you",
  domains: "domains by which a company's people join",
  "company-issuer": "a company's own log-in",
};

/** The help text of each field. Its schema has the allowed values. */
export const HELP: Readonly<Record<string, string>> = {
  id: "id or slug",
  member_id: "id or email address",
  key_id: "the key's id, key_...; never the key itself",
  name: "what people call it",
  slug: "3 to 32 of a-z, 0-9 and hyphens, unique in the region",
  owner_email: "its first member, an owner",
  is_personal: "it is one person's own",
  key_scope: "of the first key",
  restore_id: "the ID of a lost organization, whose wallet it takes over",
  scope: "where it works: at home (unless said) or everywhere",
  email: "its address",
  role: "what it may do",
  rpm_limit: "requests per minute",
  tpm_limit: "tokens per minute",
  budget_dollars: "what it may spend",
  budget_period: "the period, in UTC, that the budget is for",
  allowed_models: "the models that it may ask for",
  end_user: "the end user that pays its requests",
  expires_at: "when it ends, as 2027-01-31T00:00:00Z",
  purchase_id: "the purchase's id, or Stripe's of its session, invoice or payment",
  amount_cents: "how much, in cents; all that is left unless given",
  forgive_micro: "how much of what is owed, in millionths of a dollar",
  overlap_seconds: "how long the other secrets still work",
  give_up_balance: "give up the credits that are left",
  invitation_id: "the invitation's id",
  domain: "its name, as owners named it",
  reference: "what it is for, unique for the organization: an invoice",
  limit: "at most so many",
  offset: "leave out so many at the start",
  balance: "with the balance of each, which wakes its wallet",
  after: "only what follows this one",
  q: "a part of a name, slug or address; an id, or how a key begins",
  after_seq: "only rows after this one",
  from: "the first time, in UTC",
  to: "the time before which",
  since: "the first time, in UTC",
  group_by: "a row for each",
  list: "of this list only",
  price_list: "its own price list",
  type: "of this type only",
};

/** The placeholders of flag values, where the flag's last word doesn't fit. */
export const VALUES: Readonly<Record<string, string>> = {
  after_seq: "seq",
  group_by: "group",
  reference: "text",
};

/** The values of placeholders in examples. */
export const SAMPLES: Readonly<Record<string, string>> = {
  id: "example",
  member_id: "dev@example.com",
  key_id: "key_0VbYLVeiej0Be1V2ivdE8L5o",
  session_id: `ses_${"0".repeat(40)}`,
  webhook_id: "whk_0VbYLVeiej0Be1V2ivdE8L5o",
  purchase_id: "pur_0VbYLVeiej0Be1V2ivdE8L5o",
  price_id: "prc_0VbYLVeiej0Be1V2ivdE8L5o",
  domain: "example.com",
};
