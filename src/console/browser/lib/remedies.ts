import type { Calls } from "../api/types.ts";

type PageAddress = readonly [path: readonly string[], query?: Readonly<Record<string, string>>];
type Remedy = readonly [
  text: string,
  action?: readonly [text: string, place: PageAddress],
  /** The action's API call. Only callers who can make it see the action. */
  call?: keyof Calls,
];
type Cause = {
  readonly status: number;
  readonly code: string;
  readonly message?: string;
  readonly keyId?: string | null;
  readonly externalId?: string | null;
};

const ADD_CREDITS = ["Add credits", [["credits"]]] as const;
const KEYS = ["Manage keys", [["keys"]]] as const;
const END_PAUSE = "DELETE /v1/pauses/{id}";
const TO_CREDITS = ["Go to Credits", [["credits"]]] as const;

/** The console's advice for errors, by error code. */
export const REMEDIES: Readonly<Record<string, Remedy>> = {
  insufficient_balance: ["The balance doesn't cover this request.", ADD_CREDITS],
  insufficient_quota: ["The balance doesn't cover this request.", ADD_CREDITS],
  key_budget_exceeded: ["The key's budget is used up. Raise it, or wait for its reset.", KEYS],
  budget_exceeded: ["A budget is used up. Raise it, or retry later."],
  payment_reversed: ["You owe credits after a refund or dispute.", ADD_CREDITS],
  role_required: ["Your role doesn't allow this. Ask an owner of the organization."],
  organization_suspended: ["The organization is suspended. Contact the operator."],
  paused: ["An owner or admin can resume requests.", ["View pauses", [["settings"]]], END_PAUSE],
  operator_pause: ["Contact the operator."],
  too_many_pauses: ["End some pauses first."],
  organization_closed: ["Operators can restore a closed organization for 7 days."],
  model_not_allowed: ["Allow the key to use this model.", KEYS],
  route_not_allowed: ["Choose another model, or ask an owner or admin to change the policy."],
  key_is_limited: ["Use a key without limits."],
  region_mismatch: ["This key belongs to another region. Log in to that region's console."],
  read_only: ["You are in the customer view. Leave it to make changes."],
  origin_not_allowed: ["Open the console directly, not through another site."],
  login_refused: ["Log in again, or use another account."],
  login_too_old: ["Confirm your login to continue."],
  not_found: ["This item was deleted, or you don't have access."],
  model_not_found: ["Choose another model.", ["Browse models", [["models"]]]],
  conflict: ["Choose another value."],
  price_exists: ["A price already starts at this time. Choose another time."],
  price_in_force: ["Schedule another price."],
  price_list_in_use: ["This price list is in use. Schedule a new price instead."],
  idempotency_replay: ["This request was already processed."],
  idempotency_mismatch: ["Reload the page and try again."],
  idempotency_in_progress: ["The first attempt is still in progress. Retry in a few seconds."],
  replay_in_progress: ["The first attempt is still in progress. Retry in a few seconds."],
  hold_not_allowed: ["Allow the key to place holds.", KEYS],
  hold_ended: ["This hold was captured or released, or has expired."],
  merchant_exists: ["Choose another name."],
  no_saved_card: ["Pay on the payment page and save the card there.", TO_CREDITS],
  no_purchases: ["Buy credits first.", TO_CREDITS],
  purchase_in_progress: ["Finish or cancel the open purchase.", ["View purchase", [["credits"]]]],
  nothing_paid: ["Nothing was paid, so nothing can be refunded."],
  refund_refused: ["The payment provider rejected the refund."],
  balance_too_low: ["Refund at most the remaining balance."],
  purchase_limit: ["You have reached today's purchase limit. Try tomorrow."],
  payments_off: ["Payments are off in this region. Contact the operator."],
  too_many_keys: ["Revoke unused keys.", ["Show unused", [["keys"], { sort: "last" }]]],
  too_many_webhooks: ["Delete unused webhooks.", ["Webhooks", [["events"], { tab: "Webhooks" }]]],
  too_many_end_users: ["Delete unused end users.", ["End users", [["end-users"]]]],
  too_many_domains: ["Remove unused domains."],
  too_many_secrets: ["Let the old secret expire sooner."],
  too_many_sessions: ["Rotate the key and end its sessions.", KEYS],
  too_many_invitations: ["Cancel open invitations.", ["Team", [["team"]]]],
  too_many_organizations: ["Delete an organization first."],
  webhook_disabled: ["Enable the webhook first."],
  other_organization: ["You switched organizations in another tab. Reload the page."],
  personal_organization: ["Personal organizations have one member. Create a team."],
  has_log_in: ["This member can already log in."],
  invitation_over: ["The invitation was used, canceled or has expired. Ask for another one."],
  other_address: ["Log in with the invited email address."],
  domain_not_proven: ["Publish the TXT record, then check it again."],
  domain_taken: ["Another organization uses this domain. Contact the operator."],
  company_domains_off: ["Company domains are off. Contact the operator."],
  no_proven_domain: ["Add a domain and confirm it first."],
  not_by_company: ["Use your company login."],
  company_log_in_required: ["Use your company login."],
  has_balance: ["Check the box to give up the remaining credits, or use them first."],
  last_owner: ["Make another member an owner first.", ["Team", [["team"]]]],
  rate_limit_exceeded: ["Wait a minute and try again."],
  tokens: ["Wait a minute and try again."],
  concurrency_limit_exceeded: ["Retry in a few seconds."],
  end_user_quota_exceeded: ["Raise the end user's quota, or wait for its reset."],
  no_script: ["Reload the page."],
};

/** Remedies that link to the affected object, by error code. */
const REMEDIES_FOR_OBJECT: Readonly<Record<string, (cause: Cause) => Remedy | undefined>> = {
  end_user_quota_exceeded: ({ externalId }) =>
    externalId
      ? [
          "Raise the end user's quota, or wait for its reset.",
          [`Raise the quota of ${externalId}`, [["end-users", externalId], { do: "quota" }]],
          "PATCH /v1/users/{external_id}",
        ]
      : undefined,
  paused: ({ message = "", keyId, externalId }) => {
    const text = "An owner or admin can resume requests.";
    if (externalId && message.includes("this end user")) {
      return [text, [`Resume ${externalId}`, [["end-users", externalId]]], END_PAUSE];
    }
    const isKey = keyId && /this API key(?!')/.test(message);
    return isKey ? [text, ["Resume the key", [["keys", keyId]]], END_PAUSE] : undefined;
  },
};

const BUDGET_REMEDIES: Readonly<Record<string, (cause: Cause) => Remedy>> = {
  "your organization": () => [
    "The organization's budget is used up. An owner, admin or billing member can raise it.",
    ["Change budget", [["settings"]]],
    "PATCH /v1/orgs/{org_id}/settings",
  ],
  "this API key": ({ keyId }) => [
    "The key's budget is used up. The key's owner or an admin can raise it.",
    ["Change budget", [keyId ? ["keys", keyId] : ["keys"]]],
    "PATCH /v1/keys/{id}",
  ],
  "this session": () => [
    "The session's budget is used up. Create a session with a larger budget.",
    ["View sessions", [["keys"], { tab: "sessions" }]],
    "GET /v1/sessions",
  ],
  "this end user": ({ externalId }) => [
    "The end user's budget is used up. Raise it, or retry later.",
    ["Change budget", [externalId ? ["end-users", externalId] : ["end-users"]]],
    "PATCH /v1/users/{external_id}",
  ],
};

export function findRemedyForFailedRequest(cause: Cause): Remedy {
  const { status, code, message = "" } = cause;
  const [, owner = ""] = /^The budget of .* for (.+?) has /.exec(message) ?? [];
  return (
    BUDGET_REMEDIES[owner]?.(cause) ??
    REMEDIES_FOR_OBJECT[code]?.(cause) ??
    linkToKey(cause, REMEDIES[code]) ??
    BY_STATUS[status] ??
    (status >= 500 ? TRY_AGAIN : ["Correct the field and try again."])
  );
}

/** Links a remedy to the affected key, not to the list of keys. */
function linkToKey({ keyId }: Cause, remedy: Remedy | undefined): Remedy | undefined {
  if (remedy?.[1] !== KEYS || !keyId) return remedy;
  return [remedy[0], ["Open the key", [["keys", keyId]]]];
}

const TRY_AGAIN: Remedy = ["Try again. If it fails again, send the request ID to the operator."];
const BY_STATUS: Readonly<Record<number, Remedy>> = {
  0: ["Retrying automatically."],
  402: ["The balance doesn't cover this request.", ADD_CREDITS],
  403: ["Your role doesn't allow this. Ask an owner of the organization."],
  404: ["This item was deleted, or you don't have access."],
  409: ["The data has changed. Reload the page and try again."],
  429: ["Wait a minute and try again."],
};
