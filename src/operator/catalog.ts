import { formatUtcDay, hasRouteEnded, getPriceOnDay } from "../models/catalog/price.ts";
import type { CatalogEntry, ModelRouteEntry } from "../models/catalog/entry.ts";
import type { Model, Route } from "../models/catalog/model.ts";
import { formatRouteName } from "../models/routing/route-health.ts";
import { readRouteSpeeds } from "../events/metrics/region-speeds.ts";
import type { RouteSpeed } from "../shared/route-speed.ts";
import { CATALOG } from "../models/catalog/models.ts";
import { success } from "../shared/failure.ts";
import type { OperatorCall } from "./operator-context.ts";
import { priceInDollars } from "../shared/cost.ts";
import { DAY_MS } from "../shared/clock.ts";

/** Handles `GET /catalog`. */
export async function getCatalog(context: OperatorCall) {
  const call = { ...context, speeds: (await readRouteSpeeds(context.metrics())) ?? new Map() };
  const builtIn = new Set(CATALOG.map(({ id }) => id));
  const configuredModels = [...call.models.values()].filter(({ id, isConfigured }) => {
    return isConfigured === true || !builtIn.has(id);
  });
  const configuredIds = new Set(configuredModels.map(({ id }) => id));
  const models = [
    ...configuredModels.map((model) =>
      modelView(
        call,
        model,
        model.routes.map((route) => configuredRouteView(call, route)),
      ),
    ),
    ...CATALOG.filter(({ id }) => !configuredIds.has(id)).map((entry) =>
      builtInModelView(call, entry),
    ),
  ];
  return success({ models });
}

type CatalogCall = OperatorCall & { readonly speeds: ReadonlyMap<string, RouteSpeed> };

function speedView({ speeds }: CatalogCall, route: NamedRoute) {
  const { latency, throughput } = speeds.get(formatRouteName(route)) ?? {};
  return { latency_ms: measureView(latency), tokens_per_second: measureView(throughput) };
}

type NamedRoute = Pick<Route, "provider" | "upstreamId">;

function measureView(measure: RouteSpeed["latency"] | undefined) {
  if (measure === undefined || measure.percentiles === null) return null;
  const { percentiles, requests, organizations } = measure;
  return { ...percentiles, requests, organizations };
}

function modelView<Shown>(
  { aliases }: OperatorCall,
  { id, kind }: Pick<Model, "id" | "kind">,
  routes: readonly Shown[],
) {
  const aliasesOfModel = [...aliases].flatMap(([alias, of]) => (of === id ? [alias] : []));
  return { id, kind, aliases: aliasesOfModel, routes };
}

function configuredRouteView(call: CatalogCall, { provider, upstreamId, price }: Route) {
  return {
    provider,
    upstream_id: upstreamId,
    regions: [],
    price: priceInDollars(price),
    cost: null,
    seen_on: null,
    age_days: null,
    until: null,
    live: true,
    why_not: null,
    ...speedView(call, { provider, upstreamId }),
  };
}

function builtInModelView(call: CatalogCall, entry: CatalogEntry) {
  const soldRoutes = call.models.get(entry.id)?.routes ?? [];
  const day = formatUtcDay(call.now);
  const routes = entry.routes.map((route) => {
    const live = soldRoutes.find(
      ({ provider, upstreamId }) => provider === route.provider && upstreamId === route.upstreamId,
    );
    const { price, seenOn } = getPriceOnDay(route, day);
    return {
      provider: route.provider,
      upstream_id: route.upstreamId,
      regions: route.regions,
      price: live === undefined ? null : priceInDollars(live.price),
      cost: priceInDollars(live?.bought?.price ?? price),
      seen_on: seenOn,
      age_days: Math.floor((Date.parse(day) - Date.parse(seenOn)) / DAY_MS),
      until: route.until ?? null,
      live: live !== undefined,
      why_not: live === undefined ? unsoldReason(call, route, day) : null,
      ...speedView(call, route),
    };
  });
  return modelView(call, entry, routes);
}

function unsoldReason(
  { providers }: OperatorCall,
  route: ModelRouteEntry,
  day: string,
): "not_configured" | "ended" | "residency" {
  if (!providers.has(route.provider)) return "not_configured";
  return hasRouteEnded(route, day) ? "ended" : "residency";
}
