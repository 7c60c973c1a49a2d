import { nameOf } from "./trace.ts";
import type { Trace, Verdict } from "./trace.ts";

/** As many requests of one organisation in one region as it may have in flight there, sent at once at rest. */
export type Crowd = readonly Trace[];

/** A place in flight that a request never gave back would be missing now: each of a full crowd must be answered. */
export function judgePlaces(crowds: readonly Crowd[], inFlightMax: number): Verdict {
  const broken = crowds.length === 0 ? ["nothing proven: nobody came"] : [];
  for (const crowd of crowds) {
    const [one] = crowd;
    const place = `${one?.orgId} in ${one?.region}`;
    const refused = crowd.filter(({ status, fate }) => status !== 200 || fate !== "whole");
    broken.push(
      ...refused.map(
        (trace) => `${nameOf(trace)}: ${trace.status} ${trace.code ?? trace.fate}, at rest`,
      ),
    );
    const together = togetherIn(crowd);
    if (refused.length === 0 && together < inFlightMax) {
      broken.push(`nothing proven: ${place} had ${together} of ${inFlightMax} in flight at once`);
    }
  }
  const sent = crowds.reduce((sum, crowd) => sum + crowd.length, 0);
  return {
    promise: "no place in flight is lost",
    figure: `${sent} requests in ${crowds.length} crowds of ${inFlightMax} at once, at rest`,
    broken,
  };
}

/** How many were surely being worked on at one moment: answered with headers, not yet ended. */
function togetherIn(crowd: Crowd): number {
  const firstEnd = Math.min(...crowd.map(({ endedMs }) => endedMs));
  return crowd.filter(({ answeredMs }) => answeredMs !== null && answeredMs < firstEnd).length;
}
