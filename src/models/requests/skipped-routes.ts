import { priceModel } from "../catalog/price-lists.ts";
import type { Route } from "../catalog/model.ts";
import type { HoldGrant } from "../../shared/contracts/wallet.ts";
import { SKIPPED_MAX } from "../../shared/generation.ts";
import type { Generation, SkippedRoute } from "../../shared/generation.ts";
import { routeName } from "../routing/route-health.ts";
import { skipReason } from "./candidate-routes.ts";
import { modelOptionsOf } from "./model-options.ts";
import type { PaidRequest, PaidRoute, Run } from "./paid-request.ts";

const nameOf = ({ provider, upstreamId }: Route): string => routeName(provider, upstreamId);

export function skippedByGrant(
  request: PaidRequest,
  { routes: allowed, uncovered = [] }: HoldGrant,
  paidRoutes: readonly PaidRoute[],
): readonly SkippedRoute[] {
  const all = modelOptionsOf(request).flatMap(({ routes }) => routes);
  if (all.length === paidRoutes.length) return [];
  const usableRoutes = new Set(paidRoutes.map(({ route }) => route));
  return all.flatMap((route, at) => {
    if (usableRoutes.has(route)) return [];
    const isDenied = allowed?.includes(at) === false && !uncovered.includes(at);
    return { route: nameOf(route), why: isDenied ? "policy" : "limit" };
  });
}

/**
 * Returns the routes that a request skipped. Includes routes that can't serve it only if the client
 * chose routes.
 */
export function skippedRoutes({
  request,
  progress,
}: Pick<Run, "request" | "progress">): Pick<Generation, "skipped"> {
  const all = [...skippedByChoice(request), ...(request.unable ?? []), ...progress.skipped];
  return all.length === 0 ? {} : { skipped: all.slice(0, SKIPPED_MAX) };
}

function skippedByChoice(request: PaidRequest): readonly SkippedRoute[] {
  const { unable, pricing } = request;
  return modelOptionsOf(request).flatMap(({ model, routes, choice = null }) => {
    if (choice === null && unable === undefined) return [];
    const usableRoutes = new Set(routes.map(nameOf));
    return priceModel(model, pricing)
      .routes.filter((route) => !usableRoutes.has(nameOf(route)))
      .map((route) => ({ route: nameOf(route), why: skipReason(route, choice) }));
  });
}
