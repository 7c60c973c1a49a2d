import type { Failure, Result } from "../../../shared/failure.ts";
import { success } from "../../../shared/failure.ts";
import type { HoldRequest } from "../../../shared/contracts/wallet.ts";
import { costBoundsOf } from "./policies.ts";
import type { AllowedRequest } from "./policies.ts";

/** Failures that a request can avoid by allowing fewer models. */
const AVOIDABLE_FAILURES: ReadonlySet<Failure["kind"]> = new Set([
  "balance_too_low",
  "quota_exceeded",
  "key_budget_exceeded",
  "budget_exceeded",
  "tokens_over_limit",
  "tokens_limited",
]);

type ModelDecision<T> = { readonly allowed: AllowedRequest; readonly decided: T };

/**
 * Calls `decide` with all models of the request. If the limits don't cover all of them, keeps the
 * first model and each fallback model that the limits cover. Fails if they don't even cover the
 * first.
 */
export function decideWithFallbacks<T>(
  allowed: AllowedRequest,
  decide: (request: HoldRequest) => Result<T>,
): Result<ModelDecision<T>> {
  const all = decide(allowed.request);
  if (all.ok) return success({ allowed, decided: all.value });
  const models = new Set(allowed.request.candidates?.map(({ model }) => model));
  if (models.size < 2 || !AVOIDABLE_FAILURES.has(all.failure.kind)) return all;
  let fitting: ModelDecision<T> | null = null;
  const kept = new Set<string>();
  for (const model of models) {
    kept.add(model);
    const fewer = limitToModels(allowed, kept);
    const decided = decide(fewer.request);
    if (decided.ok) fitting = { allowed: fewer, decided: decided.value };
    else if (fitting === null) return decided;
    else kept.delete(model);
  }
  return fitting === null ? all : success(fitting);
}

function limitToModels(
  { request, routes = [] }: AllowedRequest,
  models: ReadonlySet<string>,
): AllowedRequest {
  const { candidates = [] } = request;
  const isKept = (at: number): boolean => models.has(candidates[at]?.model ?? "");
  const left = candidates.filter((_, at) => isKept(at));
  return {
    request: { ...request, candidates: left, ...costBoundsOf(left) },
    routes: routes.filter((_, at) => isKept(at)),
    uncovered: routes.filter((_, at) => !isKept(at)),
  };
}
