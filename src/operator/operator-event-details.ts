type Details = Readonly<Record<string, unknown>>;

/**
 * The body fields that a change's event stores. They contain no name, address or secret. Only
 * operators see the free text of `reason` and `reference`.
 */
const STORED_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "PATCH /orgs/:id": ["status", "reason", "rpm_limit", "price_list", "operator_policy"],
  "POST /orgs/:id/invitations": ["role"],
  "POST /orgs/:id/members": ["role"],
  "PATCH /orgs/:id/members/:member_id": ["role"],
  "PATCH /orgs/:id/keys/:key_id": [
    "rpm_limit",
    "tpm_limit",
    "budget_dollars",
    "budget_period",
    "allowed_models",
  ],
  "POST /orgs/:id/pauses": ["scope", "reason", "until"],
  "POST /orgs/:id/credits": ["amount_micro", "reference"],
  "POST /orgs/:id/purchases/:purchase_id/refund": ["amount_cents", "reason"],
  "POST /orgs/:id/owed": ["forgive_micro", "reference"],
  "POST /rerate": ["id", "model"],
};
/** Body fields whose names are stored without their values: names, addresses and long values. */
const NAME_ONLY_FIELDS =
  /^(?:name|slug|email|policy|budgets|expires_at|max_concurrent|end_user|may_hold)$/;
const PRICES_MAX = 5;
const PRICE_FIELDS = ["list", "item", "from", "price", "percent"];

/**
 * Returns the details of a change to store, from its body and its response. Null if there are none.
 */
export function detailsOf(act: string, body: unknown, response: object): Details | null {
  const sent = Object.entries(body instanceof Object ? body : {});
  const stored = STORED_FIELDS[act] ?? [];
  const others = sent.map(([name]) => name).filter((name) => NAME_ONLY_FIELDS.test(name));
  const returned = Object.fromEntries(Object.entries(response));
  const details: Details = {
    ...Object.fromEntries(sent.filter(([name]) => stored.includes(name))),
    ...(act.startsWith("PATCH ") && others.length > 0 && { other_fields: others }),
    ...(act.endsWith("/refund") && { purchase_dollars: returned["amount_dollars"] }),
    ...(act === "POST /rerate" && { dry_run: returned["dry_run"] }),
    ...(act === "POST /prices" && priceDetails(returned["prices"])),
  };
  return Object.keys(details).length === 0 ? null : details;
}

export function priceDetails(prices: unknown): Details {
  const rows: readonly unknown[] = Array.isArray(prices) ? prices : [];
  return {
    prices: rows.slice(0, PRICES_MAX).map((row) => pickFields(row, PRICE_FIELDS)),
    price_count: rows.length,
  };
}

function pickFields(row: unknown, names: readonly string[]): Details {
  const entries = Object.entries(row instanceof Object ? row : {});
  return Object.fromEntries(entries.filter(([name]) => names.includes(name)));
}
