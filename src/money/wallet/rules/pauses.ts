import type { BudgetOwner } from "../../../shared/budgets.ts";
import { conflict } from "../../../shared/failure.ts";
import type { Refusal } from "../../../shared/failure.ts";
import type { Paused } from "../../../shared/paused.ts";
import type { Pause, PauseSource } from "../../../shared/pauses.ts";

/** All pauses by rule name. `until` is the earliest end of a pause (Unix ms). */
export type PausesByName = { readonly byName: ReadonlyMap<string, Pause>; readonly until: number };

export const PAUSE_RULE_NAME_PREFIX = "pause\n";
const SOURCES: readonly PauseSource[] = ["operator", "member", "budget"];

export function pauseRuleName({
  scope,
  subject,
  source,
}: BudgetOwner & { readonly source: PauseSource }): string {
  return `${PAUSE_RULE_NAME_PREFIX}${scope}\n${subject}\n${source}`;
}

export function indexPausesByName(pauses: Iterable<Pause>): PausesByName {
  const byName = new Map([...pauses].map((pause) => [pauseRuleName(pause), pause]));
  const until = Math.min(...[...byName.values()].map(pauseEndMs));
  return { byName, until };
}

export function pauseEndMs({ until, sessionEndsAt }: Pause): number {
  return Math.min(until ?? Infinity, sessionEndsAt ?? Infinity);
}

/**
 * Returns the pause of the first paused owner. A session sees the scope and reason of its own pause
 * only.
 */
export function findFirstPause(
  { byName }: PausesByName,
  owners: readonly BudgetOwner[],
  { isSession, isRunning }: { readonly isSession: boolean; readonly isRunning: boolean },
): Paused | null {
  for (const owner of owners) {
    for (const source of SOURCES) {
      const pause = byName.get(pauseRuleName({ ...owner, source }));
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
 * Reports whether a change ends a pause earlier. Such a change requires permission to end the
 * pause.
 */
export function isEarlierPauseEnd(known: Pause, until: number | null): boolean {
  return until !== null && (known.until ?? Infinity) > until;
}

export function refuseToEndOperatorPause(): Refusal {
  const message = "The operator created this pause. Ask the operator to end it.";
  return conflict(message, null, "operator_pause");
}
