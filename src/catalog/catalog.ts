import type { Config, ModelEntry } from "../config.ts";
import type { Region } from "../lib/caller.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import type { Price } from "../lib/usage.ts";
import { aliasesOf } from "./aliases.ts";
import type { Model, ModelKind, Route } from "./model.ts";
import { OPENAI_MODELS } from "./models.ts";
import type { CatalogueEntry } from "./models.ts";
import { raised, withMarkup } from "./price.ts";
import { SANDBOX_MODELS } from "./sandbox-models.ts";

/** Where a provider's hosts promise to run: in a region, or nowhere in particular. */
export type HostTag = Region | "global";

/** A provider that is configured in this deployment. */
export type LiveProvider = { readonly id: string; readonly regions: readonly HostTag[] };

/** What can be bought in this region, by concrete id, and what each alias means. */
export type Catalog = {
  readonly models: ReadonlyMap<string, Model>;
  readonly aliases: ReadonlyMap<string, string>;
};

/** What the catalogue needs of the configuration. */
export type CatalogConfig = Pick<
  Config,
  "region" | "residency" | "sandbox" | "models" | "aliases" | "numbers"
>;

/** A model as `GET /v1/models` shows it. */
export type ListedModel = {
  readonly id: string;
  readonly object: "model";
  /** Unix seconds. */
  readonly created: number;
  readonly owned_by: string;
};

/**
 * The catalogue of this deployment, decided by configuration alone. Residency filters before anything
 * else; an operator's entry replaces the built-in model of the same id, price and routes.
 */
export function buildCatalog(options: {
  readonly config: CatalogConfig;
  readonly live: readonly LiveProvider[];
}): Catalog {
  const { config } = options;
  const allowed = allowedTags(config);
  const hosts: Hosts = new Map(
    options.live.map((host) => [host.id, host.regions.filter((tag) => allowed.includes(tag))]),
  );
  const own = new Set(config.models.map((entry) => entry.id));
  const builtIn = config.sandbox ? [...OPENAI_MODELS, ...SANDBOX_MODELS] : OPENAI_MODELS;
  const candidates = [
    ...config.models.map((entry) => modelOfOperator(entry, hosts)),
    ...builtIn
      .filter((entry) => !own.has(entry.id))
      .map((entry) => modelOfCatalogue(entry, hosts, config.numbers.MARKUP_PERCENT)),
  ];
  const live = candidates.filter((model) => model.routes.length > 0);
  const models = new Map(live.map((model) => [model.id, model]));
  return { models, aliases: aliasesOf(models, config) };
}

/** The model a name means here, alias or id; unknown, not live or of another kind: model_not_found. */
export function resolveModel(catalog: Catalog, name: string, kind: ModelKind): Result<Model> {
  const model = catalog.models.get(catalog.aliases.get(name) ?? name);
  if (model === undefined || model.kind !== kind) {
    return refuse({ kind: "model_not_found", model: name });
  }
  return success(model);
}

/** Every live model and alias, sorted by id. */
export function listModels(catalog: Catalog): readonly ListedModel[] {
  const listed: ListedModel[] = [];
  for (const model of catalog.models.values()) listed.push(wireModel(model.id, model));
  for (const [alias, id] of catalog.aliases) {
    const model = catalog.models.get(id);
    if (model !== undefined) listed.push({ ...wireModel(alias, model), owned_by: "turnpike" });
  }
  return listed.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** The tags of hosts that may serve this region. */
export function allowedTags(config: Pick<Config, "region" | "residency">): readonly HostTag[] {
  if (config.region === "us") return ["us", "global"];
  return config.residency === "relaxed" ? ["eu", "global"] : ["eu"];
}

type Hosts = ReadonlyMap<string, readonly HostTag[]>;

/** OpenAI's regional hosts cost 10 % more for models released on or after this day. */
const UPLIFT_FROM = "2026-03-05";
const UPLIFT_PERCENT = 110;
/** `created` of an operator's model: nobody says when it was made, and the field is required. */
const OPERATOR_MODEL_CREATED = Date.UTC(2026, 0, 1) / 1000;
/** For an operator's model the tokenizer and the vision encoder are unknown: the widest usual bounds. */
const UNKNOWN_ESTIMATE_FACTOR = 1.65;
const UNKNOWN_IMAGE_TOKENS = 16_384;

function modelOfCatalogue(entry: CatalogueEntry, hosts: Hosts, markupPercent: number): Model {
  const tags = (hosts.get(entry.provider) ?? []).filter((tag) => entry.regions.includes(tag));
  const regional = entry.provider === "openai" && !tags.includes("global");
  const uplift = regional && entry.released >= UPLIFT_FROM ? UPLIFT_PERCENT - 100 : 0;
  const sold = (price: Price): Price => withMarkup(withMarkup(price, uplift), markupPercent);
  const route: Route = {
    provider: entry.provider,
    upstreamId: entry.upstreamId,
    price: sold(entry),
    ...(entry.longPromptAbove !== undefined && {
      longPrompt: { aboveTokens: entry.longPromptAbove, price: sold(longPromptPrice(entry)) },
    }),
  };
  return {
    id: entry.id,
    kind: entry.kind,
    ownedBy: entry.provider,
    created: Date.parse(entry.released) / 1000,
    context: entry.context,
    maxOutput: entry.maxOutput,
    minOutput: entry.minOutput,
    abilities: entry.abilities,
    imageTokens: entry.imageTokens,
    estimateFactor: entry.estimateFactor,
    routes: tags.length > 0 ? [route] : [],
  };
}

function longPromptPrice(price: Price): Price {
  return {
    input: raised(price.input, 200),
    cached: raised(price.cached, 200),
    cacheWrite: raised(price.cacheWrite, 200),
    output: raised(price.output, 150),
  };
}

/** An operator's own price is what the customer pays: no uplift, no markup. */
function modelOfOperator(entry: ModelEntry, hosts: Hosts): Model {
  const price: Price = {
    input: entry.price.input,
    cached: entry.price.cached ?? entry.price.input,
    cacheWrite: entry.price.cache_write ?? entry.price.input,
    output: entry.price.output,
  };
  const routes = entry.routes
    .filter((route) => (hosts.get(route.provider) ?? []).length > 0)
    .map((route) => ({ provider: route.provider, upstreamId: route.upstream_id, price }));
  return {
    id: entry.id,
    kind: entry.kind,
    ownedBy: entry.routes[0]?.provider ?? "operator",
    created: OPERATOR_MODEL_CREATED,
    context: entry.context,
    maxOutput: entry.kind === "chat" ? (entry.max_output ?? entry.context) : 0,
    minOutput: 1,
    abilities: entry.abilities,
    imageTokens: entry.abilities.includes("vision") ? UNKNOWN_IMAGE_TOKENS : 0,
    estimateFactor: UNKNOWN_ESTIMATE_FACTOR,
    routes,
  };
}

function wireModel(id: string, model: Model): ListedModel {
  return { id, object: "model", created: model.created, owned_by: model.ownedBy };
}
