import * as z from "zod/mini";
import type { AppContext } from "../../shared/http/context.ts";
import { accepted, readFields } from "../../shared/http/endpoint.ts";
import { timeParameter } from "../../shared/http/parse-body.ts";
import { timestamp } from "../../shared/clock.ts";
import type {
  StreamFirst,
  StreamPage,
  StreamQuery,
  StreamStart,
} from "../../shared/contracts/usage-stream.ts";
import type { EventRecord } from "../../shared/event.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { callObject } from "../../shared/reach-object.ts";
import { callDeliveries } from "./webhooks.route.ts";

const EVENTS_PER_REPLAY_MAX = 1000;
/** Maximum events in one millisecond. An organization with 1,000 active keys can't exceed it. */
const EVENTS_PER_MILLISECOND_MAX = 10_000;

/** The start of a replay: a time for events, or a time or ledger row for the usage stream. */
export const replaySchema = z.object({
  since: z.optional(timeParameter),
  usage_since: z.optional(timeParameter),
  after_seq: z.optional(z.int().check(z.minimum(0))),
});

type ReplaySteps = {
  readonly since: (sinceMs: number, limit: number) => Promise<Result<readonly EventRecord[]>>;
  readonly queue: (events: readonly EventRecord[], replayId: string) => Promise<Result<number>>;
  readonly page: (query: StreamQuery) => Promise<Result<StreamPage>>;
  readonly restart: (from: StreamStart, first?: StreamFirst) => Promise<Result<null>>;
};

/**
 * Handles POST /v1/webhooks/{id}/replay. `since` resends up to 1,000 events. `after_seq` or
 * `usage_since` restarts the usage stream.
 */
export async function replayRoute(c: AppContext) {
  const fields = await readFields(c, replaySchema, []);
  if (!fields.ok) return fields;
  const { orgId } = c.var.admitted.caller;
  const { wallet } = objectsOf(c.env);
  const id = c.req.param("id") ?? "";
  return startReplay(fields.value, {
    since: (sinceMs, limit) => callObject(() => wallet(orgId).eventsSince(sinceMs, limit)),
    queue: (events, replayId) =>
      callDeliveries(c, (object) => object.replay(orgId, id, { events, replayId })),
    page: (query) => callObject(() => wallet(orgId).usageStream(query)),
    restart: (from, first) =>
      callDeliveries(c, (object) => object.restartStream(orgId, id, from, first)),
  });
}

export async function startReplay(
  { since, usage_since: usageSince, after_seq: afterSeq }: z.infer<typeof replaySchema>,
  steps: ReplaySteps,
) {
  const starts = [since, usageSince, afterSeq].filter((one) => one !== undefined);
  if (starts.length !== 1) {
    return invalid('Send exactly one of "since", "usage_since" and "after_seq".', "since");
  }
  if (since !== undefined) {
    const { queue } = steps;
    const result = await replay({ since: (limit) => steps.since(since, limit), queue });
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
 * millisecond, even if the page then exceeds its size.
 */
export async function replay(steps: {
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
  // There is at least one call, because only the queue knows whether the webhook exists.
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
