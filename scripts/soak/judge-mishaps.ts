import type { RegionName } from "../region-names.ts";
import type { Restart, Verdict } from "./trace.ts";

/** A line of a Worker's log that must not be there, with its event. Unix ms. */
export type Mishap = {
  readonly event: string;
  readonly region: RegionName;
  readonly atMs: number;
  readonly message: string;
};

/** Bugs, whatever happens around them. */
const NEVER = ["exception", "settle_without_hold", "uncaught"] as const;
/** What is left of a request whose objects were killed while it settled: it tries for 28 s. */
const AFTER_A_KILL = ["settlement_unsaved", "settle_unknown"] as const;
const KILL_NEAR_MS = 30_000;
const EVENTS: ReadonlySet<string> = new Set([...NEVER, ...AFTER_A_KILL]);
/** How workerd begins a line about what nobody caught. Its own notes bear NOSENTRY. */
const UNCAUGHT = /uncaught/i;

/** The event of a line that must not be there; null for any other line. */
export function mishapIn(event: string, message: string): string | null {
  if (EVENTS.has(event)) return event;
  const isRuntime = !message.startsWith("{") && !message.includes("NOSENTRY");
  return isRuntime && UNCAUGHT.test(message) ? "uncaught" : null;
}

/** No bug, and no settlement that found no hold or no home, unless a region was killed just before. */
export function judgeMishaps(mishaps: readonly Mishap[], kills: readonly Restart[]): Verdict {
  const excused = mishaps.filter((mishap) => isExcused(mishap, kills));
  const broken = mishaps
    .filter((mishap) => !excused.includes(mishap))
    .map(({ event, region, message }) => `${region}: ${event}: ${message.slice(0, 300)}`);
  return {
    promise: "no exception, every settlement finds its hold and is saved",
    figure: `${broken.length} such lines, ${excused.length} more within ${KILL_NEAR_MS / 1000} s of a kill`,
    broken,
  };
}

function isExcused({ event, atMs }: Mishap, kills: readonly Restart[]): boolean {
  const isOfKills = AFTER_A_KILL.some((one) => one === event);
  return (
    isOfKills &&
    kills.some(({ fromMs, untilMs }) => atMs >= fromMs && atMs <= untilMs + KILL_NEAR_MS)
  );
}
