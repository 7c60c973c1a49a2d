import type { Config, ConfigProblem } from "../../shared/config/config.ts";
import { ALIAS_KINDS } from "./aliases.ts";
import type { CallKind } from "../../shared/kinds.ts";
import { CATALOG, SANDBOX_MODELS } from "./models.ts";

/**
 * Returns contradictions between PROVIDERS, MODELS and ALIASES. Until they are corrected, every
 * request returns 503 `misconfigured`.
 */
export function findCatalogProblems(
  config: Pick<Config, "providers" | "models" | "aliases">,
  builtInProviders: readonly string[],
): readonly ConfigProblem[] {
  return [
    ...providerProblems(config, builtInProviders).map((problem) => {
      return { variable: "PROVIDERS", problem };
    }),
    ...modelProblems(config, builtInProviders).map((problem) => ({ variable: "MODELS", problem })),
    ...aliasProblems(config).map((problem) => ({ variable: "ALIASES", problem })),
  ];
}

const BUILT_IN_MODELS = [...CATALOG, ...SANDBOX_MODELS];

function providerProblems(
  config: Pick<Config, "providers">,
  builtInProviders: readonly string[],
): string[] {
  const ids = config.providers.map((provider) => provider.id);
  return [
    ...duplicatesOf(ids).map((id) => `names the provider "${id}" twice`),
    ...ids
      .filter((id) => id === "sandbox" || builtInProviders.includes(id))
      .map((id) => `"${id}" is a built-in provider; choose another id`),
  ];
}

function modelProblems(
  config: Pick<Config, "providers" | "models" | "aliases">,
  builtInProviders: readonly string[],
): string[] {
  const known = new Set([...builtInProviders, ...config.providers.map((provider) => provider.id)]);
  const ids = config.models.map((model) => model.id);
  const routes = config.models.flatMap((model) =>
    model.routes.map((route) => ({ id: model.id, provider: route.provider })),
  );
  return [
    ...duplicatesOf(ids).map((id) => `names the model "${id}" twice`),
    ...ids
      .filter((id) => ALIAS_KINDS.has(id) || Object.hasOwn(config.aliases, id))
      .map((id) => `"${id}" is an alias; choose another id`),
    ...ids
      .filter((id) => id.startsWith("sandbox/"))
      .map((id) => `"${id}": ids under sandbox/ are built in`),
    ...routes
      .filter((route) => !known.has(route.provider))
      .map(
        ({ id, provider }) =>
          `"${id}" has a route to "${provider}", which is neither built in nor in PROVIDERS`,
      ),
  ];
}

function aliasProblems(config: Pick<Config, "models" | "aliases">): string[] {
  const kinds = new Map<string, CallKind>(
    [...BUILT_IN_MODELS, ...config.models].map((model) => [model.id, model.kind]),
  );
  return Object.entries(config.aliases).flatMap(([alias, id]) => {
    const kind = kinds.get(id);
    const wanted = ALIAS_KINDS.get(alias);
    if (kinds.has(alias)) return [`"${alias}" is a model; choose another name`];
    if (kind === undefined) return [`"${alias}" means "${id}", which is no model`];
    if (wanted !== undefined && wanted !== kind) {
      return [`"${alias}" must mean a model for ${wanted}`];
    }
    return [];
  });
}

function duplicatesOf(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))];
}
