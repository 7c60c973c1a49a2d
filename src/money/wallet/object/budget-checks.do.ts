import type { HoldRequest } from "../../../shared/contracts/wallet.ts";
import { reservesIn } from "../rules/limits.ts";
import type { Meter } from "../rules/limits.ts";
import { CHECKED, metersOf } from "./budget-memory.do.ts";
import { followTerms } from "./budgets.do.ts";
import { metersOfPayer } from "./end-users.do.ts";
import type { HeldTerms, Payer } from "./hold-checks.do.ts";
import { followBudget } from "./key-budgets.do.ts";
import type { Tx } from "./memory.do.ts";
import { metersOfSession } from "./sessions.do.ts";

export function modelsOf({ candidates, model }: HoldRequest): readonly string[] | null {
  if (candidates !== undefined) return [...new Set(candidates.map((one) => one.model))];
  return model === null ? null : [model.id];
}

export function requestMeters(
  tx: Tx,
  request: HoldRequest,
  { terms, payer }: { readonly terms: HeldTerms; readonly payer: Payer },
): readonly Meter[] {
  const { memory, sql } = tx;
  const { keyId } = request;
  const { session } = terms;
  followBudget(tx, keyId, terms, request.placed?.pays === "quota");
  followTerms(tx, { scope: "key", subject: keyId }, terms.budgets);
  const meters = [
    ...metersOfPayer(tx, payer),
    ...metersOf(sql, memory, { keyId, endUserId: null, session: null }),
  ];
  const models = modelsOf(request);
  const counting = meters.filter(({ budget }) => reservesIn(budget, models));
  if (session === undefined) return counting;
  const ofSession = metersOfSession(tx, session).filter(({ budget }) => reservesIn(budget, models));
  // Sorts, because only the first exceeded limit is reported and can pause its owner.
  return [...counting, ...ofSession].toSorted(
    (one, other) => CHECKED.indexOf(one.scope) - CHECKED.indexOf(other.scope),
  );
}
