import type { ModelEntry } from "../../shared/config/config.ts";
import { parsePriceFields } from "../../shared/usage.ts";
import {
  hasRouteEnded,
  getPriceOnDay,
  scaleTokenPrices,
  applyMarkupToPrices,
  applyMarkup,
} from "./price.ts";
import {
  getProviderLimits,
  UNKNOWN_IMAGE_TOKENS,
  ESTIMATE_FACTOR_MAX,
  TOOLS_TOKENS_MAX,
} from "./entry.ts";
import type { CatalogEntry, DataLocation, ModelRouteEntry } from "./entry.ts";
import type { Model, Route, RouteLimits } from "./model.ts";
import { CALL_KINDS } from "../../shared/kinds.ts";
import type { CallKind } from "../../shared/kinds.ts";
import type { Region } from "../../shared/regions.ts";

/** The active providers, each with its data locations for this region. */
export type DataLocationsByProvider = ReadonlyMap<string, readonly DataLocation[]>;

type CatalogTerms = {
  readonly region: Region;
  readonly markupPercent: number;
  readonly day: string;
  readonly sellEnded: readonly string[];
};

const OPERATOR_MODEL_CREATED = Date.UTC(2026, 0, 1) / 1000;

/** Returns a model with the highest limits of its active routes, or null if no route is active. */
export function makeBuiltInModel(
  entry: CatalogEntry,
  hosts: DataLocationsByProvider,
  terms: CatalogTerms,
): Model | null {
  const isSoldAfterEnd = terms.sellEnded.includes(entry.id);
  const live = entry.routes.flatMap((route) => {
    if (hasRouteEnded(route, terms.day) && !isSoldAfterEnd) return [];
    const tag = hostTagFor(route, hosts.get(route.provider) ?? [], terms.region);
    return tag === undefined ? [] : [{ route, tag }];
  });
  if (live.length === 0) return null;
  const { id, kind, minOutput, imageTokens, estimateFactor, thinkingFloor, toolsTokens } = entry;
  const best = highestLimits(
    entry,
    live.map(({ route }) => route.limits ?? {}),
  );
  return {
    id,
    kind,
    ownedBy: id.slice(0, id.indexOf("/")),
    created: Date.parse(entry.released) / 1000,
    ...best,
    minOutput,
    ...(thinkingFloor !== undefined && { thinkingFloor }),
    ...(toolsTokens !== undefined && { toolsTokens }),
    imageTokens,
    estimateFactor,
    routes: live.map(({ route, tag }) => activeRoute(route, tag, best, { ...terms, kind })),
  };
}

/**
 * Returns a model from MODELS, or null if no route is active. `profiles` maps the operator's
 * providers to profiles.
 */
export function makeOperatorModel(
  entry: ModelEntry,
  hosts: DataLocationsByProvider,
  { profiles, region }: { readonly profiles: ReadonlyMap<string, string>; readonly region: Region },
): Model | null {
  const price = parsePriceFields(entry.price);
  const routes = entry.routes.flatMap(({ provider, upstream_id: upstreamId }): Route[] => {
    const dataRegion = preferRegion(hosts.get(provider) ?? [], region);
    if (dataRegion === undefined) return [];
    const like = profiles.get(provider) ?? provider;
    const limits = getProviderLimits(like, { kind: entry.kind, upstreamId });
    return [{ provider, upstreamId, price, ...limitsIfAny(limits), dataRegion }];
  });
  if (routes.length === 0) return null;
  const abilities = entry.abilities ?? (entry.kind === "chat" ? ["tools"] : []);
  return {
    id: entry.id,
    kind: entry.kind,
    isConfigured: true,
    ownedBy: entry.routes[0]?.provider ?? "operator",
    created: OPERATOR_MODEL_CREATED,
    context: entry.context,
    maxOutput: CALL_KINDS[entry.kind].hasOutput ? (entry.max_output ?? entry.context) : 0,
    minOutput: 1,
    abilities,
    imageTokens: abilities.includes("vision") ? UNKNOWN_IMAGE_TOKENS : 0,
    estimateFactor: ESTIMATE_FACTOR_MAX,
    toolsTokens: TOOLS_TOKENS_MAX,
    routes,
  };
}

function hostTagFor(
  route: ModelRouteEntry,
  tags: readonly DataLocation[],
  region: Region,
): DataLocation | undefined {
  return preferRegion(
    tags.filter((tag) => route.regions.includes(tag)),
    region,
  );
}

function preferRegion(tags: readonly DataLocation[], region: Region): DataLocation | undefined {
  return tags.includes(region) ? region : tags[0];
}

type HighestLimits = Pick<Model, "context" | "maxOutput" | "abilities">;

function highestLimits(entry: CatalogEntry, limits: readonly RouteLimits[]): HighestLimits {
  return {
    context: Math.max(...limits.map(({ context = entry.context }) => context)),
    maxOutput: Math.max(...limits.map(({ maxOutput = entry.maxOutput }) => maxOutput)),
    abilities: entry.abilities.filter((ability) =>
      limits.some(({ lacks = [] }) => !lacks.includes(ability)),
    ),
  };
}

function activeRoute(
  route: ModelRouteEntry,
  tag: DataLocation,
  best: HighestLimits,
  { region, markupPercent, day, kind }: CatalogTerms & { readonly kind: CallKind },
): Route {
  const { provider, upstreamId } = route;
  const { from } = getPriceOnDay(route, day);
  const bought = purchasePrices(route, tag === region ? (route.uplift ?? 0) : 0, day);
  return {
    provider,
    upstreamId,
    dataRegion: tag,
    ...applyMarkupToPrices(bought, markupPercent),
    ...limitsIfAny({
      ...getProviderLimits(provider, { kind, upstreamId }),
      ...lowerLimits(best, route.limits ?? {}),
    }),
    origin: { from: Date.parse(from), list: null },
    bought,
  };
}

function purchasePrices(
  { prices, longPrompt }: ModelRouteEntry,
  uplift: number,
  day: string,
): NonNullable<Route["bought"]> {
  const { price } = getPriceOnDay({ prices }, day);
  if (longPrompt === undefined) return { price: applyMarkup(price, uplift) };
  const { above: aboveTokens, ...percents } = longPrompt;
  const long = { aboveTokens, price: scaleTokenPrices(price, percents), percents };
  return applyMarkupToPrices({ price, longPrompt: long }, uplift);
}

function lowerLimits(
  best: HighestLimits,
  { context, maxOutput, lacks = [] }: RouteLimits,
): RouteLimits {
  const lacking = lacks.filter((ability) => best.abilities.includes(ability));
  return {
    ...(context !== undefined && context < best.context && { context }),
    ...(maxOutput !== undefined && maxOutput < best.maxOutput && { maxOutput }),
    ...(lacking.length > 0 && { lacks: lacking }),
  };
}

function limitsIfAny(limits: RouteLimits): { readonly limits?: RouteLimits } {
  return Object.keys(limits).length === 0 ? {} : { limits };
}
