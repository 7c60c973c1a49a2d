import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import { Isolate } from "../http/isolate.ts";
import { SummedLine } from "../http/summed-line.ts";
import { refuse } from "../lib/failure.ts";
import type { Refusal } from "../lib/failure.ts";
import type { ShedReason } from "../lib/in-flight.ts";
import { recorderOf } from "../metrics/count-requests.route.ts";

const makeLine = (): SummedLine => new SummedLine("requests_shed");

/**
 * Refuses a request that found no place, and counts it. They come in storms, so one line a second tells how
 * many there were since the line before, and the last one's id; each has a line of its own only with
 * LOG_REQUESTS=all.
 */
export function overloaded(c: Context<AppEnv>, reason: ShedReason): Refusal {
  const { config, startedMs, requestId } = c.var;
  recorderOf(config).tally.count("shed", { reason });
  c.set("logged", config.logRequests !== "all");
  const line = Isolate.of(config).get(makeLine);
  line.add(reason, startedMs, { last_request_id: requestId });
  return refuse({ kind: "overloaded" });
}
