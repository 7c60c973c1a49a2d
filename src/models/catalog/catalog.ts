import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { allowedRouteIndexes } from "../../shared/policy.ts";
import type { PolicyLayer } from "../../shared/policy.ts";
import type { Model } from "./model.ts";
import type { Config } from "../../shared/config/config.ts";
import { regionRowOf } from "../../shared/regions.ts";
import { resolveAliases } from "./aliases.ts";
import { formatUtcDay, findUnchangedSpan } from "./price.ts";
import type { TimeSpan } from "./price.ts";
import type { DataLocation } from "./entry.ts";
import { makeBuiltInModel, makeOperatorModel } from "./live-model.ts";
import { toListedModel, toListedPrice } from "./listed-model.ts";
import type { CooldownCheck, ListedModel, PricedModel } from "./listed-model.ts";
import { listUpcomingPriceChangeTimes, applyPriceLists } from "./price-lists.ts";
import type { Pricing } from "./price-lists.ts";
import type { DataLocationsByProvider } from "./live-model.ts";
import { CALL_KINDS } from "../../shared/kinds.ts";
import type { CallKind } from "../../shared/kinds.ts";
import { CATALOG, SANDBOX_MODELS } from "./models.ts";
import type { Region } from "../../shared/regions.ts";

/** Removes forbidden routes. Fails with `model_not_allowed` if no route is left. */
export function applyModelPolicies(
  model: Model,
  sent: string,
  policies: readonly PolicyLayer[] = [],
): Result<Model> {
  if (policies.length === 0) return success(model);
  const candidates = model.routes.map(({ provider, dataRegion }) => {
    return { sent, model: model.id, provider, region: dataRegion };
  });
  const allowed = allowedRouteIndexes(policies, candidates);
  return allowed.length === 0
    ? refuse({ kind: "model_not_allowed", model: sent })
    : success({ ...model, routes: model.routes.filter((_, index) => allowed.includes(index)) });
}

/** A configured provider, with the locations in which it guarantees to process data. */
export type ActiveProvider = { readonly id: string; readonly regions: readonly DataLocation[] };

/** This region's active models by ID, until the next price change. */
export type Catalog = {
  readonly span: TimeSpan;
  readonly models: ReadonlyMap<string, Model>;
  readonly aliases: ReadonlyMap<string, string>;
  /** Model IDs by model name without the author. Excludes names that several authors use. */
  readonly bareNames: ReadonlyMap<string, string>;
  readonly region: Region;
};

/**
 * The catalog and a caller's prices, and the catalog after each announced price change, oldest
 * first.
 */
export type CallerCatalog = {
  readonly catalog: Catalog;
  readonly pricing: Pricing;
  readonly later: readonly DatedCatalog[];
  readonly policies?: readonly PolicyLayer[];
  readonly isInCooldown?: CooldownCheck;
};
export type DatedCatalog = { readonly from: number; readonly catalog: Catalog };

type CatalogConfig = Pick<
  Config,
  "region" | "residency" | "sandbox" | "providers" | "models" | "sellEnded" | "aliases" | "numbers"
>;

/**
 * Builds the catalog that applies at a time (Unix ms). An operator's model replaces the built-in
 * model with the same ID.
 */
export function buildCatalog(options: {
  readonly config: CatalogConfig;
  readonly live: readonly ActiveProvider[];
  readonly at: number;
}): Catalog {
  const { at, config } = options;
  const allowed = getAllowedDataLocations(config);
  const hosts: DataLocationsByProvider = new Map(
    options.live.map((host) => [host.id, host.regions.filter((tag) => allowed.includes(tag))]),
  );
  const own = new Set(config.models.map((entry) => entry.id));
  const builtIn = config.sandbox ? [...CATALOG, ...SANDBOX_MODELS] : CATALOG;
  const profiles = new Map(config.providers.map(({ id, profile }) => [id, profile]));
  const { region, sellEnded } = config;
  const terms = {
    region,
    markupPercent: config.numbers.MARKUP_PERCENT,
    day: formatUtcDay(at),
    sellEnded,
  };
  const candidates = [
    ...config.models.map((entry) => makeOperatorModel(entry, hosts, { profiles, region })),
    ...builtIn
      .filter((entry) => !own.has(entry.id))
      .map((entry) => makeBuiltInModel(entry, hosts, terms)),
  ];
  const models = new Map<string, Model>();
  for (const model of candidates) if (model !== null) models.set(model.id, model);
  const aliases = resolveAliases(models, config);
  const span = findUnchangedSpan(builtIn, at);
  return { span, models, aliases, bareNames: bareNamesOf(models, aliases), region };
}

function bareNamesOf(
  models: Catalog["models"],
  aliases: Catalog["aliases"],
): ReadonlyMap<string, string> {
  const bare = new Map<string, string>();
  const taken = new Set([...models.keys(), ...aliases.keys()]);
  for (const id of models.keys()) {
    const name = id.slice(id.indexOf("/") + 1);
    if (taken.has(name)) bare.delete(name);
    else bare.set(name, id);
    taken.add(name);
  }
  return bare;
}

/**
 * Returns the model, or `model_not_found`. If a model of another kind has this name, the error says
 * so.
 */
export function resolveModel(catalog: Catalog, name: string, kind: CallKind): Result<Model> {
  const model = findByAnyName(catalog, name);
  if (model?.kind === kind) return success(model);
  const message = model === undefined ? undefined : wrongKindMessage(name, model);
  return refuse({
    kind: "model_not_found",
    model: name,
    ...(message !== undefined && { message }),
  });
}

function wrongKindMessage(name: string, { kind }: Model): string {
  const { does, path } = CALL_KINDS[kind];
  return `The model '${name}' ${does}: ask ${path}.`;
}

function findByAnyName(catalog: Catalog, name: string): Model | undefined {
  const id = catalog.aliases.get(name);
  if (id !== undefined) return catalog.models.get(id);
  return findByName(catalog, name) ?? findByName(catalog, claudeName(name));
}

function findByName({ models, bareNames }: Catalog, name: string): Model | undefined {
  return models.get(name) ?? models.get(bareNames.get(name) ?? "");
}

/**
 * Converts Anthropic's names of Claude models to the catalog's (docs.claude.com, models). Anthropic
 * writes a hyphen instead of the dot, and can append a date, `-latest` or `[1m]`.
 */
function claudeName(name: string): string {
  if (!/^(?:anthropic\/)?claude-/.test(name)) return "";
  return name
    .replace(/\[1m\]$/, "")
    .replace(/-(?:\d{8}|latest)$/, "")
    .replace(/-(\d{1,2})-(\d{1,2})$/, "-$1.$2");
}

/** Returns functions that look up a model, alias or author by name. */
export function createModelNameLookup(catalog: Catalog) {
  const { models, aliases } = catalog;
  const isAlias = (name: string): boolean => aliases.has(name);
  const isAuthor = (name: string): boolean =>
    name.endsWith("/*") && [...models.keys()].some((id) => id.startsWith(name.slice(0, -1)));
  const entryOf = (name: string): string | null =>
    isAlias(name) || isAuthor(name) ? name : (findByAnyName(catalog, name)?.id ?? null);
  return { entryOf, isAlias };
}

export function findModel(callerCatalog: CallerCatalog, name: string): ListedModel | undefined {
  const id = createModelNameLookup(callerCatalog.catalog).entryOf(name);
  return listModels(callerCatalog).find((listed) => listed.id === id);
}

/** Returns a model with its routes, at the caller's prices. */
export function findRoutes(
  callerCatalog: CallerCatalog,
  name: string,
): { readonly listed: ListedModel; readonly model: Model } | undefined {
  const listed = findModel(callerCatalog, name);
  const model = callerCatalog.catalog.models.get(listed?.alias_of ?? listed?.id ?? "");
  if (listed === undefined || model === undefined) return undefined;
  const priced = priceForCaller(model, listed.id, callerCatalog);
  return priced === null ? undefined : { listed, model: priced.model };
}

export function listModels(callerCatalog: CallerCatalog): readonly ListedModel[] {
  const { models, aliases, region } = callerCatalog.catalog;
  const { isInCooldown = () => false } = callerCatalog;
  const listed: ListedModel[] = [];
  const named = Map.groupBy(aliases.keys(), (name) => aliases.get(name));
  for (const model of models.values()) {
    const priced = priceForCaller(model, model.id, callerCatalog);
    if (priced === null) continue;
    const shown = toListedModel(model.id, priced, { region, isInCooldown });
    listed.push({ ...shown, aliases: named.get(model.id) ?? [] });
  }
  for (const [alias, id] of aliases) {
    const model = models.get(id);
    const priced = model === undefined ? null : priceForCaller(model, alias, callerCatalog);
    if (priced === null) continue;
    const shown = toListedModel(alias, priced, { region, isInCooldown });
    listed.push({ ...shown, owned_by: "turnpike", alias_of: id });
  }
  return listed.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function priceForCaller(
  fullModel: Model,
  name: string,
  { later, pricing, policies }: CallerCatalog,
): PricedModel | null {
  const allowed = applyModelPolicies(fullModel, name, policies);
  if (!allowed.ok) return null;
  const model = allowed.value;
  const now = applyPriceLists(model, pricing);
  const shown = JSON.stringify(toListedPrice(now));
  const changes = listUpcomingPriceChangeTimes(model, pricing);
  const moments = [...changes, ...later.map(({ from }) => from)].toSorted((a, b) => a - b);
  for (const from of moments) {
    const then = later.findLast((one) => one.from <= from)?.catalog.models;
    const sold = then === undefined ? model : then.get(model.id);
    const left = sold === undefined ? null : applyModelPolicies(sold, name, policies);
    if (left?.ok !== true) break; // The model is no longer active.
    const next = applyPriceLists(left.value, { ...pricing, at: from });
    if (JSON.stringify(toListedPrice(next)) !== shown) {
      return { model: now, next: { from, model: next } };
    }
  }
  return { model: now, next: null };
}

/** Returns the locations that the region's residency setting allows. */
export function getAllowedDataLocations(
  config: Pick<Config, "region" | "residency">,
): readonly DataLocation[] {
  return regionRowOf(config.region).hosts[config.residency] as readonly DataLocation[];
}
