import type { Config } from "../../shared/config/config.ts";
import type { Model } from "./model.ts";
import type { CallKind } from "../../shared/kinds.ts";

/** The model kind that each built-in alias stands for. */
export const ALIAS_KINDS: ReadonlyMap<string, CallKind> = new Map([
  ["smart", "chat"],
  ["fast", "chat"],
  ["cheap", "chat"],
  ["embeddings/cheapest", "embeddings"],
]);

/**
 * Models of the alias `smart`, best first. An alias uses the first active model in its list. Each
 * alias list has a model of every chat provider.
 */
const SMART_MODELS = [
  "anthropic/claude-opus-5.5",
  "openai/gpt-6-sol",
  "google/gemini-3.8-flash",
  "xai/grok-4.6",
  "moonshotai/kimi-k3",
  "deepseek/deepseek-v4-pro",
  "mistral/mistral-medium-3.5",
  "zai/glm-5.2",
  "cohere/command-a-reasoning",
  "openai/gpt-oss-120b",
];
const FAST_MODELS = [
  "openai/gpt-6-luna",
  "anthropic/claude-haiku-5.5",
  "google/gemini-3.5-flash-lite",
  "openai/gpt-oss-120b",
  "mistral/mistral-small-4",
  "deepseek/deepseek-v4.1-flash",
  "minimax/minimax-m3",
  "xai/grok-4.3",
  "cohere/command-r7b",
];
const SANDBOX_ALIASES: ReadonlyMap<string, string> = new Map([
  ["smart", "sandbox/echo"],
  ["fast", "sandbox/echo"],
  ["cheap", "sandbox/echo"],
  ["embeddings/cheapest", "sandbox/embed"],
]);

/**
 * Returns the model of each alias: the operator's choice, or else the built-in one. Omits an alias
 * if the operator chose an inactive model.
 */
export function resolveAliases(
  models: ReadonlyMap<string, Model>,
  config: Pick<Config, "aliases" | "models">,
): ReadonlyMap<string, string> {
  const configured = new Map(Object.entries(config.aliases));
  const chosen = new Map<string, string>();
  for (const alias of new Set([...ALIAS_KINDS.keys(), ...configured.keys()])) {
    const id = configured.get(alias) ?? builtInModelOf(alias, models, config);
    if (id !== undefined && models.has(id)) chosen.set(alias, id);
  }
  return chosen;
}

function builtInModelOf(
  alias: string,
  models: ReadonlyMap<string, Model>,
  config: Pick<Config, "models">,
): string | undefined {
  const real = [...models.values()].filter((model) => !isSandbox(model));
  if (real.length === 0) return SANDBOX_ALIASES.get(alias);
  if (alias === "cheap") return cheapestModel(real, "chat");
  if (alias === "embeddings/cheapest") return cheapestModel(real, "embeddings");
  const curated = alias === "smart" ? SMART_MODELS : FAST_MODELS;
  const own = config.models.filter((entry) => entry.kind === "chat").map((entry) => entry.id);
  return [...curated, ...own].find((id) => models.has(id));
}

function cheapestModel(models: readonly Model[], kind: CallKind): string | undefined {
  const ranked = models
    .filter((model) => model.kind === kind)
    .toSorted((a, b) => blendedPrice(a) - blendedPrice(b) || (a.id < b.id ? -1 : 1));
  return ranked[0]?.id;
}

function blendedPrice(model: Model): number {
  const [route] = model.routes;
  return route === undefined ? Infinity : 3 * route.price.input + route.price.output;
}

function isSandbox(model: Model): boolean {
  return model.routes.every((route) => route.provider === "sandbox");
}
