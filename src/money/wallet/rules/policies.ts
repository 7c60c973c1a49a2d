import { refuse, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { FAILURE_TRAITS } from "../../../shared/failure-traits.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import type { KeyTerms } from "../../../shared/key-terms.ts";
import { allowedRouteIndexes, allowsModel, findPolicyObjection } from "../../../shared/policy.ts";
import type { Policy, PolicyLayer, RouteCandidate } from "../../../shared/policy.ts";
import type { Session } from "../../../shared/session.ts";
import type { HoldRequest } from "../../../shared/contracts/wallet.ts";

/** Policies by owner: `operator`, `organization` or a member's ID. */
export type PoliciesByOwner = Map<string, Policy>;

export const OPERATOR_POLICY_OWNER = "operator";
export const ORGANIZATION_POLICY_OWNER = "organization";

export function setPolicy(policies: PoliciesByOwner, owner: string, policy: Policy | null): void {
  if (policy === null) policies.delete(owner);
  else policies.set(owner, policy);
}

type PolicySubject = Pick<KeyTerms, "allowedModels" | "policy"> & {
  readonly memberId?: string | undefined;
  readonly session?: Session | undefined;
};

const NO_ROUTE_LIMITS = { allowed_providers: null, allowed_data_regions: null };

/** Returns all policies for a request, operator first. */
export function collectPolicyLayers(
  policies: PoliciesByOwner,
  subject: PolicySubject,
): readonly PolicyLayer[] {
  const { memberId, session } = subject;
  const layers: PolicyLayer[] = [];
  const add = (scope: PolicyLayer["scope"], policy: Policy | null | undefined): void => {
    if (policy) layers.push({ ...policy, scope });
  };
  const addModels = (scope: PolicyLayer["scope"], models: readonly string[] | null): void => {
    if (models !== null) {
      layers.push({ ...NO_ROUTE_LIMITS, allowed_models: models, scope, hasAliases: true });
    }
  };
  if (policies.size > 0) {
    add("operator", policies.get(OPERATOR_POLICY_OWNER));
    add("organization", policies.get(ORGANIZATION_POLICY_OWNER));
    if (memberId !== undefined) add("member", policies.get(memberId));
  }
  add("key", subject.policy);
  addModels("key", subject.allowedModels);
  add("session", session?.policy);
  addModels("session", session?.allowedModels ?? null);
  return layers;
}

/**
 * A request with the cost bounds of its allowed routes. `HoldGrant` documents `routes` and
 * `uncovered`.
 */
export type AllowedRequest = {
  readonly request: HoldRequest;
  readonly routes?: readonly number[];
  readonly uncovered?: readonly number[];
};

/**
 * Returns the request with its allowed routes, or a failure if policies allow none. Without
 * candidates, checks only model lists.
 */
export function applyPolicies(
  layers: readonly PolicyLayer[],
  request: HoldRequest,
  isSession: boolean,
): Result<AllowedRequest> {
  const { candidates } = request;
  if (candidates === undefined) return applyModelLists(layers, request);
  const routes = allowedRouteIndexes(layers, candidates);
  const left = candidates.filter((_, index) => routes.includes(index));
  if (left.length > 0) {
    return success({ request: { ...request, candidates: left, ...costBoundsOf(left) }, routes });
  }
  const found = findPolicyObjection(layers, candidates);
  // A session's error must not reveal the policies of its key or organization.
  const isHidden = isSession && found?.scope !== "session";
  const isNamed = found !== null && !isHidden && found.field !== "allowed_models";
  const model = request.model?.sent ?? "";
  return isNamed
    ? refuse({ kind: "route_not_allowed", model, ...found })
    : refuse({ kind: "model_not_allowed", model });
}

function applyModelLists(
  layers: readonly PolicyLayer[],
  request: HoldRequest,
): Result<AllowedRequest> {
  const { model } = request;
  if (!layers.every(({ hasAliases }) => hasAliases)) return refuse({ kind: "candidates_required" });
  const isAllowed = layers.every((layer) => model !== null && allowsModel(layer, model));
  return isAllowed
    ? success({ request })
    : refuse({ kind: "model_not_allowed", model: model?.sent ?? "" });
}

/**
 * Returns the cost bounds of the most expensive candidate. Includes token bounds if all candidates
 * have them.
 */
function costBoundsOf(
  candidates: readonly RouteCandidate[],
): Pick<HoldRequest, "least" | "sure" | "most"> & Partial<Pick<HoldRequest, "tokens">> {
  const worst = (of: (one: RouteCandidate) => Micros): Micros =>
    micros(Math.max(...candidates.map(of)));
  const tokens = candidates.flatMap((one) => one.tokens ?? []);
  return {
    least: worst(({ least }) => least),
    sure: worst(({ sure }) => sure),
    most: worst(({ most }) => most),
    ...(tokens.length === candidates.length && {
      tokens: {
        prompt: Math.max(...tokens.map(({ prompt }) => prompt)),
        least: Math.max(...tokens.map(({ least }) => least)),
        most: Math.max(...tokens.map(({ most }) => most)),
      },
    }),
  };
}

/** Returns a retry's allowed routes whose model and cost the first hold covers. */
export function findRoutesForRetry(
  layers: readonly PolicyLayer[],
  { candidates }: Pick<HoldRequest, "candidates">,
  known: Pick<HoldRequest, "least" | "most"> & { readonly models: readonly string[] | null },
): readonly number[] | undefined {
  if (candidates === undefined) return undefined;
  return allowedRouteIndexes(layers, candidates).filter((index) => {
    const one = candidates[index];
    if (one === undefined || known.models?.includes(one.model) === false) return false;
    return one.least <= known.least && one.most <= known.most;
  });
}

/**
 * Returns the cost bounds for comparing a retry with its first hold. Considers all candidates,
 * because policies may have changed.
 */
export function findBoundsForRetry(
  { candidates, least, most }: HoldRequest,
  known: Pick<HoldRequest, "least" | "most">,
): Pick<HoldRequest, "least" | "most"> {
  const isOfOne =
    candidates?.some((one) => one.least === known.least) === true &&
    candidates.some((one) => one.most === known.most);
  return isOfOne ? { least: known.least, most: known.most } : { least, most };
}

type ModelDecision<T> = { readonly allowed: AllowedRequest; readonly decided: T };

/**
 * Calls `decide` with all models of the request. If the limits don't cover all of them, keeps the
 * first model and each covered fallback model. Fails if the first isn't covered.
 */
export function decideWithFallbacks<T>(
  allowed: AllowedRequest,
  decide: (request: HoldRequest) => Result<T>,
): Result<ModelDecision<T>> {
  const all = decide(allowed.request);
  if (all.ok) return success({ allowed, decided: all.value });
  const models = new Set(allowed.request.candidates?.map(({ model }) => model));
  if (models.size < 2 || FAILURE_TRAITS[all.failure.kind].isAvoidable !== true) return all;
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
