import type {
  DeliveryAttempt,
  DeliveryDetail,
  DeliveryPage,
  DeliveryRecord,
  WebhookHealth,
} from "../../shared/contracts/deliveries.ts";
import { timestamp } from "../../shared/clock.ts";
import type { Result } from "../../shared/failure.ts";
import { receiverView } from "./receiver-settings.ts";
import type { Webhook } from "./webhooks.store.ts";

export function webhookView(webhook: Webhook, nowMs: number) {
  const until = webhook.secrets[1]?.until ?? null;
  return {
    id: webhook.id,
    url: webhook.url,
    types: webhook.types,
    format: webhook.format,
    receiver: receiverView(webhook.receiver),
    enabled: webhook.disabledReason === null,
    disabled_reason: webhook.disabledReason,
    previous_secret_until: until === null || until <= nowMs ? null : timestamp(until),
    created_at: timestamp(webhook.createdAt),
  };
}

const NO_ATTEMPTS: WebhookHealth = {
  failingSince: null,
  waiting: 0,
  delivered24h: 0,
  failed24h: 0,
  lastSuccessAt: null,
  lastError: null,
};

/** Returns a webhook with its health, which is null if its Durable Object is unavailable. */
export function webhookWithHealthView(
  webhook: Webhook,
  health: Result<Readonly<Record<string, WebhookHealth>>>,
  nowMs: number,
) {
  return {
    ...webhookView(webhook, nowMs),
    health: health.ok ? healthView(webhook, health.value[webhook.id] ?? NO_ATTEMPTS) : null,
  };
}

function healthView({ disabledReason }: Webhook, health: WebhookHealth) {
  const running = health.failingSince === null ? ("ok" as const) : ("failing" as const);
  return {
    state: disabledReason === null ? running : ("off" as const),
    failing_since: nullableTimestamp(health.failingSince),
    waiting: health.waiting,
    delivered_24h: health.delivered24h,
    failed_24h: health.failed24h,
    last_success_at: nullableTimestamp(health.lastSuccessAt),
    last_error: health.lastError,
  };
}

export function testResultView(attempt: DeliveryAttempt) {
  const { status, error, answer, durationMs } = attempt;
  return { delivered: error === null, status, error, answer, duration_ms: durationMs };
}

export function deliveriesView(found: DeliveryPage) {
  return { deliveries: found.deliveries.map(deliveryView), next_after: found.nextAfter };
}

export function deliveryDetailView(delivery: DeliveryDetail) {
  const { body, headers, newestAttempts } = delivery;
  return {
    ...deliveryView(delivery),
    body,
    headers,
    newest_attempts: newestAttempts.map(({ at, status, error, answer, durationMs }) => {
      return { at: timestamp(at), status, error, answer, duration_ms: durationMs };
    }),
  };
}

function deliveryView(delivery: DeliveryRecord) {
  return {
    id: delivery.id,
    event_id: delivery.eventId,
    type: delivery.type,
    state: delivery.state,
    attempts: delivery.attempts,
    created_at: timestamp(delivery.createdAt),
    next_attempt_at: nullableTimestamp(delivery.nextAt),
    last_attempt_at: nullableTimestamp(delivery.lastAt),
    status: delivery.status,
    error: delivery.error,
    answer: delivery.answer,
    duration_ms: delivery.durationMs,
  };
}

function nullableTimestamp(at: number | null): string | null {
  return at === null ? null : timestamp(at);
}
