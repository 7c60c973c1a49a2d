import type { Event } from "../api/types.ts";

export type EventType = Event["type"];

/** Every type of event that the API has. */
const ALL = {
  "balance.credited": 1,
  "balance.charged": 1,
  "balance.low": 1,
  "purchase.created": 1,
  "purchase.needs_customer": 1,
  "purchase.credited": 1,
  "purchase.declined": 1,
  "purchase.expired": 1,
  "payment.reversed": 1,
  "payment.reinstated": 1,
  "payment.forgiven": 1,
  "top_up.paused": 1,
  "top_up.disabled": 1,
  "end_user.alert": 1,
  "end_user.quota_reached": 1,
  "key.created": 1,
  "key.changed": 1,
  "key.rotated": 1,
  "key.revoked": 1,
  "key.expiring": 1,
  "key.budget_reached": 1,
  "session.ended": 1,
  "session.budget_reached": 1,
  "member.created": 1,
  "member.changed": 1,
  "member.removed": 1,
  "invitation.created": 1,
  "invitation.ended": 1,
  "settings.changed": 1,
  "organization.created": 1,
  "organization.changed": 1,
  "organization.wallet_rebuilt": 1,
  "organization.events_left_out": 1,
  "webhook.created": 1,
  "webhook.changed": 1,
  "webhook.rotated": 1,
  "webhook.deleted": 1,
  "webhook.disabled": 1,
} satisfies Readonly<Record<EventType, 1>>;

/** Each with its name as people read it. */
export const EVENT_TYPES = Object.keys(ALL).map(
  (type) => [type as EventType, type.replace(".", ": ").replaceAll("_", " ")] as const,
);
