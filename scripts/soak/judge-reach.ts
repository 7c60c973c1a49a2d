import type { Verdict } from "./trace.ts";

/** What the load must have met to prove anything, and how often it did. */
export type Met = Readonly<Record<string, number>>;

/** How long a run must be to meet everything, whatever the machine: a storm of each kind, several times. */
const WHOLE_RUN_MS = 60_000;
/** What a run of any length meets. */
const ALWAYS: ReadonlySet<string> = new Set([
  "answers of 200",
  "forged keys refused",
  "keys revoked",
]);
/** Of what was to be sent: a machine that drowns in its own load shows nothing of the gateway. */
const LEFT_OUT_SHARE_MAX = 0.2;

/** The load as it was meant and as it was: requests that were sent, and those left out at their time. */
export type Load = { readonly lengthMs: number; readonly sent: number; readonly leftOut: number };

/**
 * A run in which nothing was tried proves nothing. One shorter than a minute must have met some things,
 * and says of the others only how often it met them.
 */
export function judgeReach(met: Met, { lengthMs, sent, leftOut }: Load): Verdict {
  const entries = Object.entries(met);
  const broken = [...new Set([...ALWAYS, ...Object.keys(met)])]
    .filter((what) => (met[what] ?? 0) < 1)
    .filter((what) => lengthMs >= WHOLE_RUN_MS || ALWAYS.has(what))
    .map((what) => `no ${what}`);
  const figure = entries.map(([what, count]) => `${count} ${what}`).join(", ");
  return unlessTooSlow({ promise: "everything was tried", figure, broken }, { sent, leftOut });
}

/** A verdict that hangs on time: on a machine that could not send its load it says nothing of the gateway. */
export function unlessTooSlow(
  verdict: Verdict,
  { sent, leftOut }: Pick<Load, "sent" | "leftOut">,
): Verdict {
  if (leftOut <= (sent + leftOut) * LEFT_OUT_SHARE_MAX) return verdict;
  const notJudged = `the machine is too slow: ${leftOut} of ${sent + leftOut} requests were left out`;
  return { ...verdict, broken: [], notJudged };
}
