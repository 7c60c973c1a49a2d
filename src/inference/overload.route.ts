import type { Context } from "hono";
import type { Config } from "../config.ts";
import type { AppEnv } from "../http/context.ts";
import { Isolate } from "../http/isolate.ts";
import { SummedLine } from "../http/summed-line.ts";
import { refuse } from "../lib/failure.ts";
import type { Refusal } from "../lib/failure.ts";
import type { ShedReason } from "../lib/in-flight.ts";
import { recorderOf } from "../metrics/count-requests.route.ts";

/**
 * What an isolate refuses for want of room. It comes in storms: each is counted, and one line a second tells how many
 * there were since the line before, and the last one's id.
 */
export class Sheds {
  readonly #config: Config;
  readonly #line = new SummedLine("requests_shed");

  constructor(config: Config) {
    this.#config = config;
  }

  note(reason: ShedReason, requestId: string, startedMs: number): void {
    recorderOf(this.#config).tally.count("shed", { reason });
    this.#line.add(reason, startedMs, { last_request_id: requestId });
  }
}

/** Those of this isolate. */
export function shedsOf(config: Config): Sheds {
  return Isolate.of(config).get(makeSheds);
}

const makeSheds = (config: Config): Sheds => new Sheds(config);

/** Refuses a request that found no place, and counts it; it has a line of its own only with LOG_REQUESTS=all. */
export function overloaded(c: Context<AppEnv>, reason: ShedReason): Refusal {
  const { config, startedMs, requestId } = c.var;
  shedsOf(config).note(reason, requestId, startedMs);
  c.set("logged", config.logRequests !== "all");
  return refuse({ kind: "overloaded" });
}
