import { timestamp } from "../../shared/clock.ts";
import type { Price, Unit } from "../../shared/usage.ts";
import type { Ability, Model } from "./model.ts";
import { KINDS } from "../../shared/kinds.ts";
import type { Kind } from "../../shared/kinds.ts";
import type { Region } from "../../shared/regions.ts";

/** A model, or an alias of one, as `GET /v1/models` shows it. Tokens; prices in dollars per token, as text. */
export type ListedModel = {
  readonly id: string;
  readonly object: "model";
  /** Its name without its maker, for pickers. */
  readonly display_name: string;
  /** Unix seconds. */
  readonly created: number;
  readonly owned_by: string;
  readonly kind: Kind;
  readonly context_length: number;
  /** Null for a kind without output. */
  readonly max_output_tokens: number | null;
  readonly input_modalities: readonly ("text" | "image")[];
  /** Fields of a request that it heeds for certain, beyond its input. */
  readonly supported_parameters: readonly string[];
  /** What the caller pays at its first route, for a prompt of usual length; the shape of OpenRouter's list. */
  readonly pricing: ListedPrice;
  /** The next one that is announced, and from when on; null: none is. */
  readonly next_price: (ListedPrice & { readonly from: string }) | null;
  /** Where this list is of: a model may be sold in other regions too. */
  readonly regions: readonly Region[];
  /** Who may be asked for it, in the order of preference. */
  readonly providers: readonly string[];
  /** Of an alias: the model that it means now. */
  readonly alias_of?: string;
  /** Of a model: the aliases that mean it now. */
  readonly aliases?: readonly string[];
};

/** Dollars per token, and for one of what is counted beside tokens, where that costs. */
type ListedPrice = {
  readonly prompt: string;
  readonly completion: string;
  readonly input_cache_read: string;
  readonly input_cache_write: string;
} & { readonly [U in Unit]?: string };

/** A model as a caller pays for it, and when and to what that changes next, as far as is announced. */
export type PricedModel = {
  readonly model: Model;
  readonly next: { readonly from: number; readonly model: Model } | null;
};

/** What an ability adds. */
const OF_ABILITY: Readonly<Record<Ability, readonly string[]>> = {
  tools: ["tools", "tool_choice", "parallel_tool_calls"],
  vision: [],
  reasoning: ["reasoning_effort"],
  dimensions: ["dimensions"],
};

/** What is known of a model under one of its names. */
export function listedModel(id: string, { model, next }: PricedModel, region: Region): ListedModel {
  const { kind, created, ownedBy, context, maxOutput, abilities, routes } = model;
  const { hasOutput, parameters } = KINDS[kind];
  return {
    id,
    object: "model",
    display_name: id.slice(id.indexOf("/") + 1),
    created,
    owned_by: ownedBy,
    kind,
    context_length: context,
    max_output_tokens: hasOutput ? maxOutput : null,
    input_modalities: abilities.includes("vision") ? ["text", "image"] : ["text"],
    supported_parameters: [
      ...parameters,
      ...(kind === "chat" && routes.some(({ limits }) => limits?.choices !== 1) ? ["n"] : []),
      ...abilities.flatMap((ability) => OF_ABILITY[ability]),
    ],
    pricing: listedPrice(model),
    next_price: next === null ? null : { from: timestamp(next.from), ...listedPrice(next.model) },
    regions: [region],
    providers: [...new Set(routes.map(({ provider }) => provider))],
  };
}

export function listedPrice({ routes }: Model): ListedPrice {
  const price: Price = routes[0]?.price ?? { input: 0, output: 0, cached: 0, cacheWrite: 0 };
  const units = Object.entries(price.units ?? {});
  return {
    prompt: dollarsPerToken(price.input),
    completion: dollarsPerToken(price.output),
    input_cache_read: dollarsPerToken(price.cached),
    input_cache_write: dollarsPerToken(price.cacheWrite),
    ...Object.fromEntries(units.map(([unit, each]) => [unit, dollarsPerToken(each)])),
  };
}

/** Micros per million tokens as dollars per token, exactly: 150,000 is "0.00000015". */
export function dollarsPerToken(perMillion: number): string {
  const digits = String(perMillion).padStart(13, "0");
  const whole = digits.slice(0, -12);
  const rest = digits.slice(-12).replace(/0+$/, "");
  return rest === "" ? whole : `${whole}.${rest}`;
}
