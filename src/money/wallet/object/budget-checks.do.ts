import type { HoldRequest } from "../../../shared/contracts/wallet.ts";
import { reservesIn } from "../rules/limits.ts";
import type { Meter } from "../rules/limits.ts";
import { metersOf } from "./budget-memory.do.ts";
import { followTerms } from "./budgets.do.ts";
import type { HeldTerms } from "./hold-checks.do.ts";
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
  { terms, endUserId }: { readonly terms: HeldTerms; readonly endUserId: string | null },
): readonly Meter[] {
  const { memory, sql } = tx;
  const { keyId } = request;
  const { session } = terms;
  followBudget(tx, keyId, terms, request.placed?.pays === "quota");
  followTerms(tx, { scope: "key", subject: keyId }, terms.budgets);
  const meters = metersOf(sql, memory, { keyId, endUserId, session: null });
  if (session !== undefined) meters.push(...metersOfSession(tx, session));
  const models = modelsOf(request);
  return meters.filter(({ budget }) => reservesIn(budget, models));
}
