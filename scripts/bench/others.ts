import { childPids, coresWorkedMs, cpuMicroseconds } from "../workerd.ts";
import type { Figure } from "./figure.ts";

/**
 * Watches what other programs take of this machine while figures are taken: the answer, when it is asked
 * for, is how many cores they kept busy on average since. Far above 0 the times are theirs as well.
 */
export function watchOthers(): () => Figure {
  const pids = [process.pid, ...childPids()];
  const own = (): number => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
  const begun = { atMs: performance.now(), busyMs: coresWorkedMs(), ownUs: own() };
  return () => {
    const ownMs = (own() - begun.ownUs) / 1000;
    const elapsedMs = performance.now() - begun.atMs;
    const cores = (coresWorkedMs() - begun.busyMs - ownMs) / elapsedMs;
    return { name: "cores kept busy by other programs", value: Math.max(0, cores), unit: "" };
  };
}
