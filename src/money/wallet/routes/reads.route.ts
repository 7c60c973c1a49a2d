import * as z from "zod/mini";
import type { AppContext } from "../../../shared/http/context.ts";
import {
  timeParameterSchema,
  singleValueSchema,
  pageQuerySchema,
  parseQuery,
  wholeNumberParameterWithDefault,
} from "../../../shared/http/parse-body.ts";
import { timestamp } from "../../../shared/clock.ts";
import { EVENT_TYPES } from "../../../shared/event.ts";
import type { EventRecord } from "../../../shared/event.ts";
import { success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { objectsOf } from "../../../shared/contracts/objects.ts";
import { dollarsOf } from "../../../shared/money.ts";
import { callObject } from "../../../shared/reach-object.ts";
import type { WalletMethods, EventPage, EventQuery } from "../../../shared/contracts/wallet.ts";
import type { AlertPage } from "../../../shared/contracts/reports.ts";

/** Calls the caller's wallet and retries failures, so `call` must be safe to repeat. */
export function callWalletOfCaller<T>(
  c: AppContext,
  call: (wallet: WalletMethods) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { orgId } = c.var.admitted.caller;
  return callObject(() => call(objectsOf(c.env).wallet(orgId)));
}

export async function readBalanceRoute(c: AppContext) {
  const answer = await callWalletOfCaller(c, (wallet) => wallet.balance());
  if (!answer.ok) return answer;
  const { creditsMicro, heldMicro, owedMicro } = answer.value;
  return success({
    credits_micro: creditsMicro,
    credits_dollars: dollarsOf(creditsMicro),
    held_micro: heldMicro,
    available_micro: creditsMicro - heldMicro,
    owed_micro: owedMicro ?? 0,
  });
}

export async function listAlertsRoute(c: AppContext) {
  const page = parseQuery(pageQuerySchema, c.req.url);
  if (!page.ok) return page;
  const { limit, offset } = page.value;
  const answer = await callWalletOfCaller(c, (wallet) => wallet.alerts(limit, offset));
  return answer.ok ? success(alertsView(answer.value, page.value)) : answer;
}

export function alertsView(
  page: AlertPage,
  query: { readonly limit: number; readonly offset: number },
) {
  const alerts = page.alerts.map((alert) => ({
    id: alert.id,
    kind: alert.kind,
    external_id: alert.externalId,
    period: alert.period,
    threshold: alert.threshold,
    limit_micro: alert.limitMicro,
    value_micro: alert.valueMicro,
    created_at: timestamp(alert.createdAt),
  }));
  return { alerts, total: page.total, ...query };
}

export const eventsQuerySchema = z.object({
  type: z.optional(z.enum(EVENT_TYPES)),
  from: z.optional(timeParameterSchema),
  to: z.optional(timeParameterSchema),
  limit: wholeNumberParameterWithDefault(1, 100, 50),
  after: z.optional(
    singleValueSchema.check(z.regex(/^evt_[0-9A-Za-z]{24}$/, "must be an event's id")),
  ),
});

export function parseEventsQuery(url: string): Result<EventQuery> {
  const fields = parseQuery(eventsQuerySchema, url);
  if (!fields.ok) return fields;
  const { type = null, from = null, to = null, limit, after = null } = fields.value;
  return success({ type, from, to, limit, after });
}

export async function listEventsRoute(c: AppContext) {
  const query = parseEventsQuery(c.req.url);
  if (!query.ok) return query;
  const answer = await callWalletOfCaller(c, (wallet) => wallet.events(query.value));
  return answer.ok ? success(eventsView(answer.value)) : answer;
}

/** Returns events. `dropped` counts the events deleted because the log was full. */
export function eventsView({ events, nextAfter, dropped }: EventPage) {
  return {
    events: events.map(eventView),
    next_after: nextAfter,
    dropped: dropped === null ? null : { events: dropped.events, until: timestamp(dropped.until) },
  };
}

function eventView(event: EventRecord) {
  const { id, type, createdAt, actor, subject, data } = event;
  return { id, type, created_at: timestamp(createdAt), actor, subject, data };
}
