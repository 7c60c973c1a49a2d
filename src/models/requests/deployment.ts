import type { Config, ConfigProblem } from "../../shared/config/config.ts";
import { findCatalogProblems } from "../catalog/catalog-problems.ts";
import { buildCatalog } from "../catalog/catalog.ts";
import type { Catalog, DatedCatalog } from "../catalog/catalog.ts";
import { Isolate } from "../../shared/http/isolate.ts";
import type { CallKind } from "../../shared/kinds.ts";
import type { Provider } from "../core/provider.ts";
import {
  BUILT_IN_PROVIDERS,
  buildProviders,
  listActiveProviders,
  findProviderProblems,
} from "../providers/registry.ts";
import { RouteHealth } from "../routing/route-health.ts";
import { RouteSpeeds } from "../routing/route-times.ts";
import { createSandboxProvider } from "../providers/sandbox/sandbox.ts";

/** An isolate's catalogs, providers and route health. */
export type Deployment = {
  /**
   * Returns the catalog at a time (Unix ms). A request keeps the catalog and prices of its start.
   */
  readonly catalogAt: (nowMs: number) => Catalog;
  readonly catalogsAfter: (nowMs: number) => readonly DatedCatalog[];
  readonly providers: ReadonlyMap<string, Provider>;
  readonly providerIds: ReadonlySet<string>;
  readonly health: RouteHealth;
  readonly times: RouteSpeeds;
  readonly problems: readonly ConfigProblem[];
};

export function getDeployment(config: Config): Deployment {
  return Isolate.of(config).get(makeDeployment);
}

function makeDeployment(config: Config): Deployment {
  const providers = buildProviders(config, createSandboxProvider());
  return {
    ...catalogsOf(config),
    providers,
    providerIds: new Set([
      ...BUILT_IN_PROVIDERS.map(({ id }) => id),
      ...config.providers.map(({ id }) => id),
      ...providers.keys(),
    ]),
    health: new RouteHealth(),
    times: new RouteSpeeds(),
    problems: [
      ...findCatalogProblems(
        config,
        BUILT_IN_PROVIDERS.map((builtIn) => builtIn.id),
      ),
      ...findProviderProblems(config),
      ...uncallableModels(config, providers),
    ],
  };
}

function uncallableModels({ models }: Config, providers: Deployment["providers"]): ConfigProblem[] {
  return models.flatMap(({ id, kind, routes }) =>
    routes
      .filter(({ provider }) => !supportsKind(providers.get(provider), kind))
      .map(({ provider }) => {
        return {
          variable: "MODELS",
          problem: `"${id}" is for ${kind}, which "${provider}" does not do`,
        };
      }),
  );
}

function supportsKind(provider: Provider | undefined, kind: CallKind): boolean {
  return provider === undefined || (provider.kinds ?? ["chat"]).includes(kind);
}

function catalogsOf(config: Config): Pick<Deployment, "catalogAt" | "catalogsAfter"> {
  const active = listActiveProviders(config);
  let current: Catalog | null = null;
  let laterCatalogs: { readonly of: Catalog; readonly later: readonly DatedCatalog[] } | null =
    null;
  const catalogAt = (at: number): Catalog => {
    if (current === null || at < current.span.from || at >= current.span.until) {
      current = buildCatalog({ config, live: active, at });
    }
    return current;
  };
  const catalogsAfter = (at: number): readonly DatedCatalog[] => {
    const of = catalogAt(at);
    if (laterCatalogs?.of === of) return laterCatalogs.later;
    const later: DatedCatalog[] = [];
    for (let from = of.span.until; from !== Infinity && later.length < UPCOMING_CATALOGS_MAX;) {
      const catalog = buildCatalog({ config, live: active, at: from });
      later.push({ from, catalog });
      from = catalog.span.until;
    }
    laterCatalogs = { of, later };
    return later;
  };
  return { catalogAt, catalogsAfter };
}

const UPCOMING_CATALOGS_MAX = 20;
