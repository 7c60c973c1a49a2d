import {
  deliveriesParameters,
  newWebhookSchema,
  replaySchema,
  webhookChangeSchema,
  webhookRotationSchema,
} from "../../src/webhooks/webhooks.route.ts";
import { resendSchema } from "../../src/webhooks/resend.route.ts";
import * as record from "./records.ts";
import * as hooked from "./webhook-records.ts";
import { queryOf } from "./schemas.ts";

/** Where events are sent. */
export const WEBHOOK_OPERATIONS = {
  "GET /v1/webhooks": {
    tag: "Events",
    summary: "Where events are sent",
    answers: { 200: hooked.webhooks },
  },
  "POST /v1/webhooks": {
    tag: "Events",
    summary: "Send events to a URL; its secret is shown this once",
    body: newWebhookSchema,
    answers: { 201: hooked.freshWebhook },
    errors: ["too_many_webhooks"],
  },
  "GET /v1/webhooks/{id}": {
    tag: "Events",
    summary: "One webhook",
    answers: { 200: hooked.webhook },
  },
  "PATCH /v1/webhooks/{id}": {
    tag: "Events",
    summary: "Change a webhook, or switch it off and on",
    body: webhookChangeSchema,
    answers: { 200: hooked.webhook },
  },
  "DELETE /v1/webhooks/{id}": {
    tag: "Events",
    summary: "Send nothing more to it",
    answers: { 200: record.deleted },
  },
  "POST /v1/webhooks/{id}/rotate": {
    tag: "Events",
    summary: "A new secret; the one before signs as well until the overlap ends",
    body: webhookRotationSchema,
    answers: { 200: hooked.freshWebhook },
  },
  "POST /v1/webhooks/{id}/test": {
    tag: "Events",
    summary: "Send `webhook.test` now, and say what came of it",
    answers: { 200: hooked.webhookTest },
  },
  "GET /v1/webhooks/{id}/deliveries": {
    tag: "Events",
    summary: "What was sent and what waits, newest first",
    query: queryOf(deliveriesParameters),
    answers: { 200: hooked.deliveries },
  },
  "POST /v1/webhooks/{id}/resend": {
    tag: "Events",
    summary: "Send one delivery again now, or all that failed or wait",
    description: "`delivery_id` names one, `state` all in it; say one of the two.",
    body: resendSchema,
    answers: { 202: hooked.resent },
    errors: ["webhook_disabled"],
  },
  "POST /v1/webhooks/{id}/replay": {
    tag: "Events",
    summary: "Send again what happened since a time, 1,000 events a call",
    body: replaySchema,
    answers: { 202: hooked.replayed },
    errors: ["webhook_disabled", "replay_in_progress"],
  },
} as const;
