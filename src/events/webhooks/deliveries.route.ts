import * as z from "zod/mini";
import type { DeliveryQuery, ResendSelection } from "../../shared/contracts/deliveries.ts";
import type { AppContext } from "../../shared/http/context.ts";
import {
  singleValueSchema,
  parseQuery,
  wholeNumberParameterWithDefault,
  timeParameterSchema,
} from "../../shared/http/parse-body.ts";
import { EVENT_TYPES } from "../../shared/event.ts";
import type { EventRecord } from "../../shared/event.ts";
import { success, invalid } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { deliveriesView, deliveryDetailView } from "./webhook-views.ts";
import { callDeliveries, findWebhookOfPath } from "./webhooks.route.ts";
import { accepted, readBodyFields } from "../../shared/http/endpoint.ts";
import { timestamp } from "../../shared/clock.ts";
import type {
  ReplayStart,
  UsageStreamPage,
  StreamQuery,
  StreamStart,
} from "../../shared/contracts/usage-stream.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { callObject } from "../../shared/reach-object.ts";

export const deliveriesQuerySchema = z.object({
  limit: wholeNumberParameterWithDefault(1, 100, 50),
  after: z.optional(singleValueSchema),
  state: z.optional(z.enum(["pending", "delivered", "failed"])),
  type: z.optional(z.enum(EVENT_TYPES)),
});

export function parseDeliveriesQuery(url: string): Result<DeliveryQuery> {
  const query = parseQuery(deliveriesQuerySchema, url);
  if (!query.ok) return query;
  const { limit, after = null, state = null, type = null } = query.value;
  return success({ limit, after, state, type });
}

/** Handles GET /v1/webhooks/{id}/deliveries. */
export async function deliveriesRoute(c: AppContext) {
  const query = parseDeliveriesQuery(c.req.url);
  if (!query.ok) return query;
  const found = await findWebhookOfPath(c);
  if (!found.ok) return found;
  const { id } = found.value;
  const answer = await callDeliveries(c, (object) => object.deliveries(id, query.value));
  return answer.ok ? success(deliveriesView(answer.value)) : answer;
}

/** Handles GET /v1/webhooks/{id}/deliveries/{delivery_id}. */
export async function deliveryRoute(c: AppContext) {
  const found = await findWebhookOfPath(c);
  if (!found.ok) return found;
  const { id } = found.value;
  const deliveryId = c.req.param("delivery_id") ?? "";
  const answer = await callDeliveries(c, (object) => object.delivery(id, deliveryId));
  return answer.ok ? success(deliveryDetailView(answer.value)) : answer;
}

export const resendDeliveriesSchema = z.object({
  delivery_id: z.optional(
    z.string().check(z.regex(/^dlv_[0-9A-Za-z]{24}$/, "must be a delivery's id")),
  ),
  state: z.optional(z.enum(["failed", "pending"])),
});

/** Handles POST /v1/webhooks/{id}/resend. */
export async function resendRoute(c: AppContext) {
  const fields = await readBodyFields(c, resendDeliveriesSchema, []);
  if (!fields.ok) return fields;
  const selection = readSelection(fields.value);
  if (!selection.ok) return selection;
  const { orgId } = c.var.admitted.caller;
  const id = c.req.param("id") ?? "";
  const result = await callDeliveries(c, (object) => object.resend(orgId, id, selection.value));
  return result.ok ? accepted({ queued: result.value }) : result;
}

function readSelection({
  delivery_id,
  state,
}: z.infer<typeof resendDeliveriesSchema>): Result<ResendSelection> {
  if (delivery_id !== undefined && state === undefined) return success({ deliveryId: delivery_id });
  if (state !== undefined && delivery_id === undefined) return success({ state });
  return invalid("Send either 'delivery_id' or 'state'.", "delivery_id");
}

const EVENTS_PER_REPLAY_MAX = 1000;
const EVENTS_PER_MILLISECOND_MAX = 10_000;

/** The start of a replay: a time or, for the usage stream, a time or a ledger row. */
export const replaySchema = z.object({
  since: z.optional(timeParameterSchema),
  usage_since: z.optional(timeParameterSchema),
  after_seq: z.optional(z.int().check(z.minimum(0))),
});

type ReplaySteps = {
  readonly since: (sinceMs: number, limit: number) => Promise<Result<readonly EventRecord[]>>;
  readonly queue: (events: readonly EventRecord[], replayId: string) => Promise<Result<number>>;
  readonly page: (query: StreamQuery) => Promise<Result<UsageStreamPage>>;
  readonly restart: (from: StreamStart, first?: ReplayStart) => Promise<Result<null>>;
};

/**
 * Handles POST /v1/webhooks/{id}/replay. `since` resends up to 1,000 events. `after_seq` or
 * `usage_since` restarts the usage stream.
 */
export async function replayRoute(c: AppContext) {
  const fields = await readBodyFields(c, replaySchema, []);
  if (!fields.ok) return fields;
  const { orgId } = c.var.admitted.caller;
  const { wallet } = objectsOf(c.env);
  const id = c.req.param("id") ?? "";
  return startWebhookReplay(fields.value, {
    since: (sinceMs, limit) => callObject(() => wallet(orgId).eventsSince(sinceMs, limit)),
    queue: (events, replayId) =>
      callDeliveries(c, (object) => object.replay(orgId, id, { events, replayId })),
    page: (query) => callObject(() => wallet(orgId).usageStream(query)),
    restart: (from, first) =>
      callDeliveries(c, (object) => object.restartStream(orgId, id, from, first)),
  });
}

export async function startWebhookReplay(
  { since, usage_since: usageSince, after_seq: afterSeq }: z.infer<typeof replaySchema>,
  steps: ReplaySteps,
) {
  const starts = [since, usageSince, afterSeq].filter((one) => one !== undefined);
  if (starts.length !== 1) {
    return invalid('Send exactly one of "since", "usage_since" and "after_seq".', "since");
  }
  if (since !== undefined) {
    const { queue } = steps;
    const result = await replayEvents({ since: (limit) => steps.since(since, limit), queue });
    return result.ok ? accepted(result.value) : result;
  }
  const from = usageSince === undefined ? { afterSeq: afterSeq ?? 0 } : { sinceMs: usageSince };
  const page = await steps.page({ from, limit: 1 });
  if (!page.ok) return page;
  const [row] = page.value.rows;
  const param = usageSince === undefined ? "after_seq" : "usage_since";
  const first = row === undefined ? undefined : { atMs: row.createdAt, param };
  const restart = await steps.restart(page.value.from, first);
  return restart.ok
    ? accepted({ queued: 0, next_since: null, after_seq: page.value.from.seq })
    : restart;
}

/**
 * Queues a page of events and returns the start of the next page. Never splits the events of one
 * millisecond.
 */
export async function replayEvents(steps: {
  readonly since: (limit: number) => Promise<Result<readonly EventRecord[]>>;
  readonly queue: (events: readonly EventRecord[], replayId: string) => Promise<Result<number>>;
}) {
  const replayId = crypto.randomUUID();
  let events = await steps.since(EVENTS_PER_REPLAY_MAX + 1);
  if (!events.ok) return events;
  const [first] = events.value;
  let count = Math.min(events.value.length, EVENTS_PER_REPLAY_MAX);
  const isInSameMillisecond = ({ createdAt }: EventRecord): boolean =>
    createdAt === first?.createdAt;
  if (events.value.length > count && events.value.every(isInSameMillisecond)) {
    events = await steps.since(EVENTS_PER_MILLISECOND_MAX + 1);
    if (!events.ok) return events;
    count = events.value.filter(isInSameMillisecond).length;
  }
  let queuedCount = 0;
  // At least one call is necessary, because only the queue can report a missing webhook.
  for (let from = 0; from === 0 || from < count; from += EVENTS_PER_REPLAY_MAX) {
    const queueResult = await steps.queue(
      events.value.slice(from, Math.min(from + EVENTS_PER_REPLAY_MAX, count)),
      replayId,
    );
    if (!queueResult.ok) return queueResult;
    queuedCount += queueResult.value;
  }
  const nextEvent = events.value[count];
  return success({
    queued: queuedCount,
    next_since: nextEvent === undefined ? null : timestamp(nextEvent.createdAt),
  });
}
