import type { HoldRequest } from "../../../shared/contracts/wallet.ts";
import { countsAnyModel } from "../rules/limits.ts";
import type { Meter } from "../rules/limits.ts";
import { SCOPE_CHECK_ORDER, metersOf } from "./budget-memory.do.ts";
import { syncBudgets } from "./budgets.do.ts";
import { metersOfPayer } from "./end-users.do.ts";
import type { HoldTerms, Payer } from "./hold-checks.do.ts";
import { syncDollarBudget } from "./key-budgets.do.ts";
import type { Tx } from "./memory.do.ts";
import { metersOfSession } from "./sessions.do.ts";

export function requestedModels({ candidates, model }: HoldRequest): readonly string[] | null {
  if (candidates !== undefined) return [...new Set(candidates.map((one) => one.model))];
  return model === null ? null : [model.id];
}

export function requestMeters(
  tx: Tx,
  request: HoldRequest,
  { terms, payer }: { readonly terms: HoldTerms; readonly payer: Payer },
): readonly Meter[] {
  const { keyId } = request;
  const { session } = terms;
  syncDollarBudget(tx, keyId, terms, request.placed?.pays === "quota");
  syncBudgets(tx, { scope: "key", subject: keyId }, terms.budgets);
  const meters = [
    ...metersOfPayer(tx, payer),
    ...metersOf(tx, { keyId, endUserId: null, session: null }),
  ];
  const models = requestedModels(request);
  const counting = meters.filter(({ budget }) => countsAnyModel(budget, models));
  if (session === undefined) return counting;
  const ofSession = metersOfSession(tx, session).filter(({ budget }) =>
    countsAnyModel(budget, models),
  );
  // Sorts, because only the first exceeded limit is reported and can pause its owner.
  return [...counting, ...ofSession].toSorted(
    (one, other) => SCOPE_CHECK_ORDER.indexOf(one.scope) - SCOPE_CHECK_ORDER.indexOf(other.scope),
  );
}
