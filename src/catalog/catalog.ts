import type { Config } from "../config.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { aliasesOf } from "./aliases.ts";
import type { HostTag } from "./entry.ts";
import { modelOfCatalogue, modelOfOperator } from "./live-model.ts";
import type { Hosts } from "./live-model.ts";
import type { Model, ModelKind } from "./model.ts";
import { CATALOGUE } from "./models.ts";
import { SANDBOX_MODELS } from "./sandbox-models.ts";

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
  const builtIn = config.sandbox ? [...CATALOGUE, ...SANDBOX_MODELS] : CATALOGUE;
  const terms = { region: config.region, markupPercent: config.numbers.MARKUP_PERCENT };
  const candidates = [
    ...config.models.map((entry) => modelOfOperator(entry, hosts)),
    ...builtIn
      .filter((entry) => !own.has(entry.id))
      .map((entry) => modelOfCatalogue(entry, hosts, terms)),
  ];
  const models = new Map<string, Model>();
  for (const model of candidates) if (model !== null) models.set(model.id, model);
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

function wireModel(id: string, model: Model): ListedModel {
  return { id, object: "model", created: model.created, owned_by: model.ownedBy };
}
