import { EVENT_TYPES } from "../../src/lib/event.ts";
import * as z from "zod";
import { count, record, time } from "./fields.ts";

/** Webhooks and what was sent to them; strict, as records.ts. */
const webhookFields = {
  id: z.string(),
  url: z.string(),
  types: z.array(z.enum(EVENT_TYPES)).nullable().describe("Null: every type."),
  enabled: z.boolean(),
  disabled_reason: z.string().nullable(),
  previous_secret_until: time.nullable(),
  created_at: time,
};
export const webhook = record("Webhook", webhookFields);
export const freshWebhook = record("WebhookWithSecret", {
  ...webhookFields,
  secret: z.string().describe("Shown this once."),
});
export const webhooks = record("Webhooks", { webhooks: z.array(webhook) });
const sent = {
  status: z.int().nullable(),
  error: z.string().nullable(),
  answer: z.string().nullable().describe("At most the first 1,024 bytes."),
  duration_ms: z.int().nullable(),
};
export const webhookTest = record("WebhookTest", { delivered: z.boolean(), ...sent });
export const deliveries = record("Deliveries", {
  deliveries: z.array(
    record("Delivery", {
      id: z.string(),
      event_id: z.string(),
      type: z.string(),
      state: z.enum(["pending", "delivered", "failed"]),
      attempts: count,
      created_at: time,
      next_attempt_at: time.nullable(),
      last_attempt_at: time.nullable(),
      ...sent,
    }),
  ),
  next_after: z.string().nullable(),
});
export const resent = record("Resent", { queued: count });
export const replayed = record("Replay", { queued: count, next_since: time.nullable() });
