/**
 * Sentences outside docs/limits.md that repeat a limit: the page, the text around the number, and
 * the constant.
 */
export const REPEATED_LIMITS: readonly (readonly [
  page: string,
  before: RegExp,
  constant: string,
])[] = [
  ["end-users", /at most (\S+) end users/, "money/wallet/object/end-users.do.ts END_USERS_MAX"],
  ["usage", /at most (\S+) alerts of a kind/, "money/wallet/object/alerts.do.ts DAILY_ALERTS_MAX"],
  ["usage", /keeps the newest (\S+) alerts/, "money/wallet/object/alerts.do.ts ALERTS_MAX"],
  ["webhooks", /Data of more than (\S+) characters/, "shared/event.ts DATA_CHARACTERS_MAX"],
  [
    "webhooks",
    /more than (\S+) times an hour/,
    "money/wallet/object/event-log.do.ts HOURLY_EVENTS_MAX",
  ],
  [
    "webhooks",
    /\((\S+) for `key.revoked`\)/,
    "money/wallet/object/event-log.do.ts HOURLY_REVOKED_MAX",
  ],
  [
    "webhooks",
    /for a year, with at most (\S+) per organization/,
    "money/wallet/object/event-log.do.ts EVENTS_MAX",
  ],
  ["webhooks", /create up to (\S+) webhooks/, "events/webhooks/webhooks.store.ts WEBHOOKS_MAX"],
  [
    "webhooks",
    /If (\S+) messages wait/,
    "events/webhooks/delivery-rows.do.ts PENDING_DELIVERIES_MAX",
  ],
  [
    "webhooks",
    /The newest (\S+) finished messages/,
    "events/webhooks/delivery-rows.do.ts FINISHED_DELIVERIES_MAX",
  ],
  [
    "webhooks",
    /replays at most (\S+) events/,
    "events/webhooks/deliveries.route.ts EVENTS_PER_REPLAY_MAX",
  ],
  [
    "webhooks",
    /You can send (\S+) tests per minute/,
    "events/webhooks/webhook-deliveries.do.ts TESTS_PER_MINUTE_MAX",
  ],
  ["clients", /a list of up to (\S+) prompts/, "models/endpoints/completions.ts PROMPTS_MAX"],
  [
    "clients",
    /`keep_responses_hours`, from 0 to (\S+) hours/,
    "shared/contracts/settings.ts STORED_RESPONSE_HOURS_MAX",
  ],
  ["errors", /already has (\S+) active secrets/, "shared/key-uses.store.ts ACTIVE_SECRETS_MAX"],
  [
    "errors",
    /received (\S+) new secrets within a day/,
    "accounts/keys/secrets.store.ts KEY_ROTATIONS_PER_DAY_MAX",
  ],
  ["errors", /has (\S+) sessions that were/, "money/wallet/object/sessions.do.ts SESSIONS_MAX"],
  [
    "errors",
    /has ended (\S+) unused sessions in a day/,
    "money/wallet/object/sessions.do.ts UNUSED_ENDS_MAX",
  ],
  [
    "errors",
    /owns at most (\S+) organizations/,
    "accounts/people/sign-up.store.ts OWNED_ORGANIZATIONS_MAX",
  ],
  ["errors", /can have at most (\S+) \[domains/, "accounts/people/company.store.ts DOMAINS_MAX"],
  [
    "people",
    /in your profile, and own at most (\d+)/,
    "accounts/people/sign-up.store.ts OWNED_ORGANIZATIONS_MAX",
  ],
  [
    "people",
    /An organization has up to (\S+) domains/,
    "accounts/people/company.store.ts DOMAINS_MAX",
  ],
  [
    "people",
    /can have (\S+) open invitations/,
    "accounts/people/invitations.store.ts OPEN_INVITATIONS_MAX",
  ],
  [
    "people",
    /each sender can create (\S+) per hour/,
    "accounts/people/invitations.store.ts HOURLY_INVITATIONS_MAX",
  ],
  [
    "people",
    /invitation to an address is valid for (\S+) days/,
    "accounts/people/invitation-handlers.ts ADDRESSED_INVITATION_DAYS",
  ],
  [
    "people",
    /invitation without an address is valid for (\S+) days/,
    "accounts/people/invitation-handlers.ts LINK_INVITATION_DAYS",
  ],
];
