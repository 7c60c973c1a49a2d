import { resolveModel } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import { applyPriceLists } from "../catalog/price-lists.ts";
import type { Pricing } from "../catalog/price-lists.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../shared/failure.ts";
import type { SkippedRoute, Generation } from "../../shared/generation.ts";
import type { ParsedRequest } from "../core/endpoint-adapter.ts";
import type { CoreRequest } from "../core/kinds.ts";
import type { ModelFallback, RoutePreferences } from "../core/gateway-fields.ts";
import { formatRouteName } from "../routing/route-health.ts";
import { computeRequestBounds } from "./bound-request.ts";
import type { SaleContext } from "./bound-request.ts";
import { listPreferredRoutes, getSkipReason } from "./candidate-routes.ts";
import { computeCostBounds } from "./hold-bounds.ts";
import type { ModelOption, PaidRequest, PaidRoute, Run } from "./paid-request.ts";
import type { HoldGrant } from "../../shared/contracts/wallet.ts";
import { SKIPPED_ROUTES_MAX } from "../../shared/generation.ts";

export function getModelOptions(request: PaidRequest): readonly ModelOption[] {
  return request.options ?? [request];
}

/** Copies a model's fields to the request before one of its routes is called. */
export function applyModelOption(request: PaidRequest, option: ModelOption | undefined): void {
  if (option !== undefined && request.options !== undefined) Object.assign(request, option);
}

/**
 * Computes the bounds for each model. Skips models that can't serve the request. Fails if no model
 * can, or if a model is unknown.
 */
export function computeModelBounds(parsed: ParsedRequest, sale: SaleContext): Result<PaidRequest> {
  const first = computeRequestBounds(parsed, sale);
  const { fallbacks = [], request } = parsed;
  if (fallbacks.length === 0) return first;
  if (!first.ok && first.failure.kind === "model_not_found") return first;
  if (request.kind !== "chat") {
    return invalid("Only text requests can have fallback models.", listParamOf(fallbacks));
  }
  const unknown = fallbacks.find(({ name }) => !resolveModel(sale.catalog, name, "chat").ok);
  if (unknown !== undefined) {
    const { name, param } = unknown;
    return invalid(`${param} is not a known chat model: '${name}'.`, param);
  }
  const names = fallbacks.map(({ name }) => name);
  const distinct = fallbacks.filter(({ name }, at) => names.indexOf(name) === at);
  const fallbackRequests = distinct.map((one) => requestForFallback(parsed, request, one));
  const bound = [first, ...fallbackRequests.map((one) => computeRequestBounds(one, sale))];
  const bounded = bound.flatMap((one) => (one.ok ? [one.value] : []));
  const [chosen] = bounded;
  if (chosen === undefined) return first;
  const ids = bounded.map(({ model }) => model.id);
  const options = bounded
    .filter(({ model }, at) => ids.indexOf(model.id) === at)
    .map(toModelOption);
  const rejectedRoutes = [parsed, ...fallbackRequests].flatMap(
    ({ request: { body }, preferences }, at) => {
      const model = resolveModel(sale.catalog, body.model, "chat");
      const one = bound[at];
      return !model.ok || one?.ok !== false ? [] : skippedRoutesOf(model.value, preferences, one);
    },
  );
  return success({
    ...chosen,
    unsuitableRoutes: rejectedRoutes,
    ...(options.length > 1 && { options }),
  });
}

function requestForFallback(
  parsed: ParsedRequest,
  request: Extract<CoreRequest, { kind: "chat" }>,
  { name, preferences }: ModelFallback,
): ParsedRequest {
  const body = { ...request.body, model: name };
  return { ...parsed, request: { ...request, body }, preferences };
}

function skippedRoutesOf(
  { routes }: Model,
  preferences: RoutePreferences | null | undefined,
  { failure }: Refusal,
): readonly SkippedRoute[] {
  const { only = null, ignore = [] } = preferences ?? {};
  const why = skipReasonOf(failure);
  return routes.map((route) => {
    const isListed = only?.includes(route.provider) !== false && !ignore.includes(route.provider);
    return { route: formatRouteName(route), why: isListed ? why : "preference" };
  });
}

function skipReasonOf(failure: Failure): SkippedRoute["why"] {
  const param = (failure.kind === "invalid_request" ? failure.param : null) ?? "";
  if (!param.startsWith("provider")) return "parameter";
  return param === "provider.max_price" ? "max_price" : "preference";
}

function listParamOf([fallback]: readonly ModelFallback[]): string {
  return (fallback?.param ?? "").replace(/\[\d+\]$/, "");
}

function toModelOption(request: ModelOption): ModelOption {
  const { sent, model, routes, choice, conversationHash, prompt, cap, mayThink, bounds } = request;
  return { sent, model, routes, choice, conversationHash, prompt, cap, mayThink, bounds };
}

/**
 * Applies the prices of another price list. Drops routes that the client's preferences exclude at
 * these prices. Returns a failure if no route is left.
 */
export function applyPricing(request: PaidRequest, pricing: Pricing): Refusal | null {
  const options = getModelOptions(request);
  const all = options.map((option) => repriceOption(option, pricing));
  const remaining = all.flatMap((one) => (one.ok ? [one.value] : []));
  const [first] = remaining;
  if (first === undefined) return all.find((one) => !one.ok) ?? null;
  const rejectedRoutes = options.flatMap(({ model, choice }, at) => {
    const one = all[at];
    return one?.ok === false ? skippedRoutesOf(model, choice?.preferences, one) : [];
  });
  Object.assign(
    request,
    first,
    { pricing },
    request.options !== undefined && { options: remaining },
  );
  if (rejectedRoutes.length > 0) {
    request.unsuitableRoutes = [...(request.unsuitableRoutes ?? []), ...rejectedRoutes];
  }
  return null;
}

function repriceOption(option: ModelOption, pricing: Pricing): Result<ModelOption> {
  const { model, prompt, cap, choice } = option;
  const bounded = model.routes.filter(({ provider, upstreamId }) =>
    option.routes.some((one) => one.provider === provider && one.upstreamId === upstreamId),
  );
  const priced = applyPriceLists({ ...model, routes: bounded }, pricing).routes;
  const routes = listPreferredRoutes(model, priced, choice);
  if (!routes.ok) return routes;
  return success({
    ...toModelOption(option),
    routes: routes.value,
    bounds: computeCostBounds(routes.value, prompt, cap),
  });
}

/** Returns the routes that the wallet's grant excludes, with the reasons. */
export function listRoutesSkippedByGrant(
  request: PaidRequest,
  { routes: allowed, uncovered = [] }: HoldGrant,
  paidRoutes: readonly PaidRoute[],
): readonly SkippedRoute[] {
  const all = getModelOptions(request).flatMap(({ routes }) => routes);
  if (all.length === paidRoutes.length) return [];
  const usableRoutes = new Set(paidRoutes.map(({ route }) => route));
  return all.flatMap((route, at) => {
    if (usableRoutes.has(route)) return [];
    const isDenied = allowed?.includes(at) === false && !uncovered.includes(at);
    return { route: formatRouteName(route), why: isDenied ? "policy" : "limit" };
  });
}

/**
 * Returns the routes that a request skipped. Includes unsuitable routes only if the client selected
 * routes.
 */
export function listSkippedRoutes({
  request,
  progress,
}: Pick<Run, "request" | "progress">): Pick<Generation, "skipped"> {
  const all = [
    ...skippedByChoice(request),
    ...(request.unsuitableRoutes ?? []),
    ...progress.skipped,
  ];
  return all.length === 0 ? {} : { skipped: all.slice(0, SKIPPED_ROUTES_MAX) };
}

function skippedByChoice(request: PaidRequest): readonly SkippedRoute[] {
  const { unsuitableRoutes, pricing } = request;
  return getModelOptions(request).flatMap(({ model, routes, choice }) => {
    if (choice === null && unsuitableRoutes === undefined) return [];
    const usableRoutes = new Set(routes.map(formatRouteName));
    return applyPriceLists(model, pricing)
      .routes.filter((route) => !usableRoutes.has(formatRouteName(route)))
      .map((route) => ({ route: formatRouteName(route), why: getSkipReason(route, choice) }));
  });
}
