import type { BudgetOwner } from "../../../shared/budgets.ts";
import { refuse } from "../../../shared/failure.ts";
import type { Refusal } from "../../../shared/failure.ts";
import type { Paused } from "../../../shared/paused.ts";
import type { Pause, PauseSource } from "../../../shared/pauses.ts";

/** All pauses by the name of their rule, and the time (Unix ms) when the next one ends. */
export type Pauses = { readonly byName: ReadonlyMap<string, Pause>; readonly until: number };

export const PAUSE_RULE = "pause\n";
const SOURCES: readonly PauseSource[] = ["operator", "member", "budget"];

export function pauseName({
  scope,
  subject,
  source,
}: BudgetOwner & { readonly source: PauseSource }): string {
  return `${PAUSE_RULE}${scope}\n${subject}\n${source}`;
}

export function pausesOf(pauses: Iterable<Pause>): Pauses {
  const byName = new Map([...pauses].map((pause) => [pauseName(pause), pause]));
  const until = Math.min(...[...byName.values()].map(endOf));
  return { byName, until };
}

/** Returns when a pause ends on its own (Unix ms). */
export function endOf({ until, sessionEndsAt }: Pause): number {
  return Math.min(until ?? Infinity, sessionEndsAt ?? Infinity);
}

/**
 * Returns the pause of the first paused owner. For a session, hides the reason of all pauses except
 * its own.
 */
export function findPaused(
  { byName }: Pauses,
  owners: readonly BudgetOwner[],
  { isSession, isRunning }: { readonly isSession: boolean; readonly isRunning: boolean },
): Paused | null {
  for (const owner of owners) {
    for (const source of SOURCES) {
      const pause = byName.get(pauseName({ ...owner, source }));
      if (pause === undefined || (isRunning && pause.stopRunning !== true)) continue;
      const { id: pauseId, scope, reason, until } = pause;
      const isHidden = isSession && scope !== "session";
      const shown = isHidden ? { scope: null, reason: null } : { scope, reason };
      return { kind: "paused", pauseId, ...shown, until };
    }
  }
  return null;
}

/**
 * Reports whether a change would end a pause earlier. Only callers who can end the pause can do so.
 */
export function endsSooner(known: Pause, until: number | null): boolean {
  return until !== null && (known.until ?? Infinity) > until;
}

export function operatorsOwn(): Refusal {
  const message = "The operator created this pause. Contact the operator to end it.";
  return refuse({ kind: "conflict", message, param: null, code: "operator_pause" });
}
