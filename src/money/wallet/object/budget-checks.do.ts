import type { Budget } from "../../../shared/budgets.ts";
import { refuse, success } from "../../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../../shared/failure.ts";
import type { HoldRequest } from "../../../shared/contracts/wallet.ts";
import type { Session } from "../../../shared/session.ts";
import { shareOf } from "../rules/ledger.ts";
import type { Limit } from "../rules/ledger.ts";
import { roomAt } from "../rules/meter.ts";
import type { Moment } from "../rules/meter.ts";
import { selectSession } from "../tables/session-rows.do.ts";
import { amountsOf, metersOf, reservesIn } from "./budget-memory.do.ts";
import type { Meter } from "./budget-memory.do.ts";
import { followTerms } from "./budgets.do.ts";
import type { HeldTerms } from "./hold-checks.do.ts";
import type { Tx } from "./memory.do.ts";

export function modelsOf({ candidates, model }: HoldRequest): readonly string[] | null {
  if (candidates !== undefined) return [...new Set(candidates.map((one) => one.model))];
  return model === null ? null : [model.id];
}

export function requestMeters(
  tx: Tx,
  request: HoldRequest,
  { terms, endUserId }: { readonly terms: HeldTerms; readonly endUserId: string | null },
): readonly Meter[] {
  const { memory, sql } = tx;
  const { keyId } = request;
  const { session } = terms;
  followTerms(tx, { scope: "key", subject: keyId }, terms.budgets);
  const isNew = session !== undefined && selectSession(sql, session.id) === null;
  const parties = { keyId, endUserId, session: isNew ? null : (session?.id ?? null) };
  const meters = metersOf(sql, memory, parties);
  if (isNew) meters.push(...unusedMeters(session));
  const models = modelsOf(request);
  return meters.filter(({ budget }) => reservesIn(budget, models));
}

function unusedMeters({ id, budgets }: Session): Meter[] {
  return (budgets ?? []).map((budget) => ({
    scope: "session",
    subject: id,
    budget,
    sinceSeq: 0,
    sinceMs: 0,
    tally: [],
    held: new Map(),
  }));
}

export function dollarLimits(meters: readonly Meter[], at: Moment): Limit[] {
  return meters
    .filter(({ budget }) => budget.unit === "dollars")
    .map((meter) => {
      const { left, held } = amountsOf(meter, at);
      return {
        scope: meter.scope,
        left,
        held,
        refuse: ({ required, onlyHolds }) => exceeded(meter, at, { required, onlyHolds }),
      };
    });
}

export function checkRequestBudgets(meters: readonly Meter[], at: Moment): Refusal | null {
  for (const meter of meters) {
    if (meter.budget.unit !== "requests") continue;
    // A request counts only when it ends, so it doesn't help to wait for running requests.
    const short = { required: 1, onlyHolds: false };
    if (amountsOf(meter, at).free < 1) return refuse(exceeded(meter, at, short));
  }
  return null;
}

/** Returns the tokens to hold, or null if there is no token budget. */
export function tokensWithin(
  meters: readonly Meter[],
  at: Moment,
  { request, granted }: { readonly request: HoldRequest; readonly granted: number | null },
): Result<number | null> {
  const { least: leastOutput, most } = request.tokens;
  if (request.placed !== undefined) return success(granted);
  const least = request.hasCap ? most : leastOutput;
  let tokens = granted;
  for (const meter of meters) {
    if (meter.budget.unit !== "tokens") continue;
    const { left, free } = amountsOf(meter, at);
    if (free < Math.max(least, 1)) {
      return refuse(
        exceeded(meter, at, { required: least, onlyHolds: left >= Math.max(least, 1) }),
      );
    }
    const share = least + shareOf(free - least, request.hasCap);
    tokens = Math.min(tokens ?? most, share);
  }
  return success(tokens);
}

function exceeded(
  meter: Meter,
  at: Moment,
  { required, onlyHolds }: { readonly required: number; readonly onlyHolds: boolean },
): Failure {
  const { budget, scope, tally } = meter;
  const { left, held, free } = amountsOf(meter, at);
  const missing = Math.max(1, required - free);
  return {
    kind: "budget_exceeded",
    scope,
    budgetId: budget.id,
    unit: budget.unit,
    window: budget.window,
    limit: budget.amount,
    left: Math.max(0, left),
    held,
    required,
    resetsAt: roomAt(budget.window, tally, { at, missing }),
    onlyHolds,
  };
}

export function freeForCharge(meters: readonly Meter[], at: Moment, model: string): number {
  let least = Infinity;
  for (const meter of meters) {
    if (meter.budget.unit !== "dollars" || !counts(meter.budget, model)) continue;
    least = Math.min(least, amountsOf(meter, at).free);
  }
  return least;
}

const counts = (budget: Budget, model: string): boolean => reservesIn(budget, [model]);
