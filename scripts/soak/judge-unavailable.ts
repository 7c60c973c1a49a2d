import { nameOf } from "./trace.ts";
import type { FaultWindow, Trace, Verdict } from "./trace.ts";

/** How long after a fault its objects, connections and circuits may still be recovering. */
const RECOVERY_MS: Readonly<Record<FaultWindow["what"], number>> = {
  abort: 1000, // the next call starts the object again
  book: 6000,
  link: 6000,
  kill: 6000,
};
/** Of the paid requests that ran to their end and whose upstream was not made to fail. */
const ANSWERED_SHARE_MIN = 0.8;
/**
 * A forged key is refused without asking anything. Where that takes so long, the machine is drowned, and a call
 * that may take 2 s to the other region may not come back in time.
 */
const DROWNED_MS = 500;
const HOP_MS = 2000;
const PAID = new Set(["json", "stream", "embeddings"]);

/** What bounds the load of an organisation in a region, and how long a request whose client left may go on, in ms. */
export type Room = { readonly inFlightMax: number; readonly lingerMs: number };

/**
 * Every 503 of our own has its cause near: a fault that could bring it, or, where the load is shed, as
 * many requests of the organisation in flight as it may have. And faults stop few: most are answered.
 */
export function judgeUnavailable(
  traces: readonly Trace[],
  windows: readonly FaultWindow[],
  room: Room,
): Verdict {
  const refused = traces.filter(({ status, code }) => {
    return status === 503 && code !== "upstream_overloaded"; // which `judgeAnswers` judges
  });
  const isShed = shedding(traces, room);
  const isDrowned = drowning(traces);
  const unexplained = refused.filter(
    (trace) => !windows.some((one) => explains(one, trace)) && !isShed(trace),
  );
  const broken = unexplained
    .filter((trace) => !isDrowned(trace))
    .map(
      (trace) =>
        `${nameOf(trace)}: 503 ${trace.code} after ${Math.round(trace.endedMs - trace.sentMs)} ms, and nothing was broken`,
    );
  const unexcused = broken.length;
  const paid = traces.filter(
    ({ kind, fate, forced }) =>
      PAID.has(kind) && forced === "nothing" && fate !== "left" && fate !== "broken",
  );
  const answered = paid.filter(isAnswered).length;
  const share = paid.length === 0 ? 0 : answered / paid.length;
  const percent = `${(share * 100).toFixed(1)} % of ${paid.length} paid requests`;
  if (share < ANSWERED_SHARE_MIN) {
    broken.push(`only ${percent} got a 200 or a refusal that they had earned`);
  }
  return {
    promise: "a 503 only near a fault or beyond the room, nearly all answered",
    figure: `${refused.length} times 503 of ours (${unexplained.length - unexcused} by a drowned machine), ${percent} answered`,
    broken,
  };
}

function isAnswered({ status, fate }: Trace): boolean {
  return fate === "whole" && status !== null && status < 500;
}

/** Whether the fault was on, or just over, while the request lived, where it could touch it. */
function explains({ what, region, fromMs, untilMs }: FaultWindow, trace: Trace): boolean {
  const isNear = trace.endedMs >= fromMs && trace.sentMs <= untilMs + RECOVERY_MS[what];
  if (!isNear) return false;
  // only the line to the other region, and its life, can put home out of reach
  if (trace.code === "home_region_unreachable") {
    return region !== trace.region && (what === "link" || what === "kill");
  }
  return trace.code === "storage_unavailable" || trace.code === "overloaded";
}

/** Tells whether so many requests of its organisation were in flight in its region that it may be shed. */
function shedding(traces: readonly Trace[], room: Room): (trace: Trace) => boolean {
  const { inFlightMax, lingerMs } = room;
  const paid = traces.filter(({ kind }) => PAID.has(kind));
  const byPlace = Map.groupBy(paid, ({ orgId, region }) => `${orgId} ${region}`);
  return (trace) => {
    if (trace.code !== "overloaded") return false;
    const others = (byPlace.get(`${trace.orgId} ${trace.region}`) ?? []).filter((other) => {
      const goneMs = other.endedMs + (other.fate === "left" ? lingerMs : 0);
      return other !== trace && other.sentMs <= trace.endedMs && goneMs >= trace.sentMs;
    });
    return others.length >= inFlightMax;
  };
}

/** Tells whether a call to the other region ran out of time while either region was slow to do nothing at all. */
function drowning(traces: readonly Trace[]): (trace: Trace) => boolean {
  const slow = traces.filter(
    ({ kind, fate, sentMs, endedMs }) =>
      kind === "forged" && fate === "whole" && endedMs - sentMs >= DROWNED_MS,
  );
  return ({ code, sentMs, endedMs }) =>
    code === "home_region_unreachable" &&
    endedMs - sentMs >= HOP_MS &&
    slow.some((one) => one.sentMs <= endedMs && one.endedMs >= sentMs);
}
