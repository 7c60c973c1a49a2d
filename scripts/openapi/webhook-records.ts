import { WEBHOOK_FORMATS } from "../../src/events/webhooks/webhooks.store.ts";
import { WEBHOOK_EVENT_TYPES } from "../../src/shared/event.ts";
import * as z from "zod";
import { count, record, time } from "./fields.ts";

const webhookFields = {
  id: z.string(),
  url: z.string(),
  types: z
    .array(z.enum(WEBHOOK_EVENT_TYPES))
    .nullable()
    .describe("Null for every type except `usage.settled`."),
  format: z
    .enum(WEBHOOK_FORMATS)
    .nullable()
    .describe(
      "`slack`: messages for a Slack-compatible incoming webhook. `stripe_meter_events`, `openmeter`, `lago` and `otlp`: usage for these services. Null: the event as JSON.",
    ),
  receiver: z
    .strictObject({
      event_name: z.string().nullable(),
      customer: z
        .string()
        .nullable()
        .describe("`end_user` (the default), or `tag:` followed by a tag's key."),
      header: z.string().nullable(),
      credential_changed_at: time.nullable().describe("Null if there is no credential."),
    })
    .nullable()
    .describe("The settings of a usage format. The credential is never returned."),
  enabled: z.boolean(),
  disabled_reason: z.string().nullable(),
  previous_secret_until: time.nullable(),
  created_at: time,
};
export const webhook = record("Webhook", webhookFields);
export const freshWebhook = record("WebhookWithSecret", {
  ...webhookFields,
  secret: z.string().describe("Only this response contains it."),
});
export const shownWebhook = record("WebhookAndHealth", {
  ...webhookFields,
  health: z
    .strictObject({
      state: z
        .enum(["ok", "failing", "off"])
        .describe("`failing` from the first failed attempt until the next successful one."),
      failing_since: time.nullable(),
      waiting: count,
      delivered_24h: count.describe("Successful attempts in this hour and the 23 before it."),
      failed_24h: count.describe("Failed attempts in the same period."),
      last_success_at: time.nullable(),
      last_error: z.string().nullable().describe("Error of the last failed attempt."),
    })
    .nullable()
    .describe("Null while the health can't be determined."),
});
export const webhooks = record("Webhooks", { webhooks: z.array(shownWebhook) });
const sent = {
  status: z.int().nullable(),
  error: z.string().nullable(),
  answer: z.string().nullable().describe("At most the first 1,024 bytes."),
  duration_ms: z.int().nullable(),
};
export const webhookTest = record("WebhookTest", { delivered: z.boolean(), ...sent });
const deliveryFields = {
  id: z.string(),
  event_id: z.string(),
  type: z.string(),
  state: z.enum(["pending", "delivered", "failed"]),
  attempts: count,
  created_at: time,
  next_attempt_at: time.nullable(),
  last_attempt_at: time.nullable(),
  ...sent,
};
export const deliveries = record("Deliveries", {
  deliveries: z.array(record("Delivery", deliveryFields)),
  next_after: z.string().nullable(),
});
export const deliveryDetail = record("DeliveryDetail", {
  ...deliveryFields,
  body: z.string().describe("The JSON that is sent, byte for byte."),
  headers: z
    .record(z.string(), z.string())
    .nullable()
    .describe(
      "Headers of the last attempt; null if nothing was sent, or the end user was deleted.",
    ),
  newest_attempts: z
    .array(z.strictObject({ at: time, ...sent }))
    .describe("The newest ten attempts, newest first, including those before a resend."),
});
export const resent = record("Resent", { queued: count });
export const replayed = record("Replay", {
  queued: count.describe("Events. 0 for the usage stream."),
  next_since: time.nullable(),
  after_seq: count.optional().describe("The usage stream continues after this ledger row."),
});
export const REPLAY =
  "Send exactly one of `since` (events), `usage_since` (usage stream from a time) and `after_seq` (usage stream after a ledger row).";
