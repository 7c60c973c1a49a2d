import type { Context } from "hono";
import * as z from "zod/mini";
import { fail } from "../../http/context.ts";
import type { AppEnv } from "../../http/context.ts";
import { moment } from "../../http/moment.ts";
import { parseQuery, wholeNumber } from "../../http/parse-body.ts";
import { timestamp } from "../../lib/clock.ts";
import { EVENT_TYPES } from "../../lib/event.ts";
import type { EventRecord } from "../../lib/event.ts";
import { success } from "../../lib/failure.ts";
import type { Result } from "../../lib/failure.ts";
import type { EventPage, EventQuery } from "../wallet-contract.ts";
import { askOwnWallet } from "./reads.route.ts";

const ONCE = "must be given once";

const query = z.object({
  type: z.optional(z.enum(EVENT_TYPES)),
  from: z.optional(moment),
  to: z.optional(moment),
  limit: wholeNumber(1, 100, 50),
  after: z.optional(
    z.string(ONCE).check(z.regex(/^evt_[0-9A-Za-z]{24}$/, "must be an event's id")),
  ),
});

/** What a URL asks of the log, or a 400 with `param`. */
export function eventQuery(url: string): Result<EventQuery> {
  const fields = parseQuery(query, url);
  if (!fields.ok) return fields;
  const { type = null, from = null, to = null, limit, after = null } = fields.value;
  return success({ type, from, to, limit, after });
}

/** GET /v1/events?type&from&to&limit&after: what happened to the organisation, newest first. */
export async function eventsRoute(c: Context<AppEnv>): Promise<Response> {
  const asked = eventQuery(c.req.url);
  if (!asked.ok) return fail(c, asked.failure);
  const answer = await askOwnWallet(c, (wallet) => wallet.events(asked.value));
  return answer.ok ? c.json(eventsView(answer.value)) : fail(c, answer.failure);
}

/** The JSON of a page; `dropped` says what the log's bound has cost. */
export function eventsView({
  events,
  nextAfter,
  dropped,
}: EventPage): Readonly<Record<string, unknown>> {
  return {
    events: events.map(eventView),
    next_after: nextAfter,
    dropped: dropped === null ? null : { events: dropped.events, until: timestamp(dropped.until) },
  };
}

/** The JSON of an event. */
export function eventView(event: EventRecord): Readonly<Record<string, unknown>> {
  const { id, type, createdAt, actor, subject, data } = event;
  return { id, type, created_at: timestamp(createdAt), actor, subject, data };
}
