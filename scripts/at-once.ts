import { atMost } from "../src/lib/at-most.ts";

/** Does all of it, so many at a time; the results are in the order of the jobs. */
export function atOnce<T>(
  count: number,
  jobs: readonly (() => Promise<T>)[],
): Promise<readonly T[]> {
  return atMost(count, jobs, (job) => job());
}
