import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import { Isolate } from "../http/isolate.ts";
import { refuse } from "../lib/failure.ts";
import type { Refusal } from "../lib/failure.ts";
import type { ShedReason } from "../lib/in-flight.ts";
import { logWarning } from "../lib/log.ts";
import { recorderOf } from "../metrics/count-requests.route.ts";

const LINE_EVERY_MS = 1000;

/** Requests shed since the last line, by reason, and when that was. */
type Storm = { lineMs: number; counts: Partial<Record<ShedReason, number>> };

const makeStorm = (): Storm => ({ lineMs: 0, counts: {} });

/**
 * Refuses a request that found no place, and counts it. They come in storms, so one line a second tells how
 * many there were since the line before, and the last one's id; each has a line of its own only with
 * LOG_REQUESTS=all.
 */
export function overloaded(c: Context<AppEnv>, reason: ShedReason): Refusal {
  const { config, startedMs, requestId } = c.var;
  recorderOf(config).tally.count("shed", { reason });
  c.set("logged", config.logRequests !== "all");
  const storm = Isolate.of(config).get(makeStorm);
  storm.counts[reason] = (storm.counts[reason] ?? 0) + 1;
  // also after a clock that stepped back
  if (Math.abs(startedMs - storm.lineMs) >= LINE_EVERY_MS) {
    logWarning("requests_shed", { ...storm.counts, last_request_id: requestId });
    storm.lineMs = startedMs;
    storm.counts = {};
  }
  return refuse({ kind: "overloaded" });
}
