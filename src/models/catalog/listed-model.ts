import { timestamp } from "../../shared/clock.ts";
import type { Price, Unit } from "../../shared/usage.ts";
import type { Ability, Model, Route } from "./model.ts";
import { KINDS } from "../../shared/kinds.ts";
import type { Kind } from "../../shared/kinds.ts";
import type { Region } from "../../shared/regions.ts";

/** A model or alias in `GET /v1/models`. Prices are strings in dollars per token. */
export type ListedModel = {
  readonly id: string;
  readonly object: "model";
  readonly name: string;
  readonly canonical_slug: string;
  readonly display_name: string;
  readonly created: number;
  readonly owned_by: string;
  readonly kind: Kind;
  readonly context_length: number;
  readonly max_output_tokens: number | null;
  readonly input_modalities: readonly Modality[];
  /** The next six fields are those of OpenRouter's list. */
  readonly architecture: {
    readonly modality: string;
    readonly input_modalities: readonly Modality[];
    readonly output_modalities: readonly string[];
    readonly tokenizer: "Other";
    readonly instruct_type: null;
  };
  readonly top_provider: {
    readonly context_length: number;
    readonly max_completion_tokens: number | null;
    readonly is_moderated: false;
  };
  readonly per_request_limits: null;
  readonly default_parameters: null;
  readonly supported_voices: null;
  readonly links: { readonly details: string };
  readonly supported_parameters: readonly string[];
  /** The caller's price at the first route for a prompt of usual length, in OpenRouter's format. */
  readonly pricing: ListedPrice;
  readonly next_price: (ListedPrice & { readonly from: string }) | null;
  /** The region of this list. Other regions can have the model too. */
  readonly regions: readonly Region[];
  readonly providers: readonly string[];
  /**
   * `degraded` if some of the model's routes are in cooldown in this isolate, `unavailable` if all
   * are.
   */
  readonly status: "operational" | "degraded" | "unavailable";
  readonly alias_of?: string;
  readonly aliases?: readonly string[];
};

type Modality = "text" | "image";

export type ListedPrice = {
  readonly prompt: string;
  readonly completion: string;
  readonly input_cache_read: string;
  readonly input_cache_write: string;
} & { readonly [U in Unit]?: string };

/** A model at the caller's price, and the price after the next announced change. */
export type PricedModel = {
  readonly model: Model;
  readonly next: { readonly from: number; readonly model: Model } | null;
};

const PARAMETERS_BY_ABILITY: Readonly<Record<Ability, readonly string[]>> = {
  tools: ["tools", "tool_choice", "parallel_tool_calls"],
  vision: [],
  reasoning: ["reasoning_effort"],
  dimensions: ["dimensions"],
};

export type CooldownCheck = (route: Pick<Route, "provider" | "upstreamId">) => boolean;

export function toListedModel(
  id: string,
  { model, next }: PricedModel,
  { region, isInCooldown }: { readonly region: Region; readonly isInCooldown: CooldownCheck },
): ListedModel {
  const { kind, created, ownedBy, context, maxOutput, abilities, routes } = model;
  const { hasOutput } = KINDS[kind];
  const editsImages = routes.some(
    ({ price: { units = {} } }) => (units.input_image_token ?? units.input_image) !== undefined,
  );
  const hasImages = editsImages || abilities.includes("vision");
  const inputs: Modality[] = hasImages ? ["text", "image"] : ["text"];
  const outputTokens = hasOutput ? maxOutput : null;
  return {
    id,
    object: "model",
    name: id,
    canonical_slug: model.id,
    display_name: id.slice(id.indexOf("/") + 1),
    created,
    owned_by: ownedBy,
    kind,
    context_length: context,
    max_output_tokens: outputTokens,
    input_modalities: inputs,
    architecture: architectureOf(inputs, hasOutput ? "text" : kind),
    top_provider: {
      context_length: context,
      max_completion_tokens: outputTokens,
      is_moderated: false,
    },
    per_request_limits: null,
    default_parameters: null,
    supported_voices: null,
    links: { details: `/v1/models/${id}` },
    supported_parameters: parametersOf(model),
    pricing: toListedPrice(model),
    next_price: next === null ? null : { from: timestamp(next.from), ...toListedPrice(next.model) },
    regions: [region],
    providers: [...new Set(routes.map(({ provider }) => provider))],
    status: statusOf(routes.map(isInCooldown)),
  };
}

export function parametersOf({
  kind,
  abilities,
  routes,
}: Pick<Model, "kind" | "abilities" | "routes">): readonly string[] {
  return [
    ...KINDS[kind].parameters,
    ...(kind === "chat" && routes.some(({ limits }) => limits?.choices !== 1) ? ["n"] : []),
    ...abilities.flatMap((ability) => PARAMETERS_BY_ABILITY[ability]),
  ];
}

function statusOf(inCooldown: readonly boolean[]): ListedModel["status"] {
  if (!inCooldown.includes(true)) return "operational";
  return inCooldown.includes(false) ? "degraded" : "unavailable";
}

function architectureOf(inputs: readonly Modality[], output: string) {
  return {
    modality: `${inputs.join("+")}->${output}`,
    input_modalities: inputs,
    output_modalities: [output],
    tokenizer: "Other",
    instruct_type: null,
  } as const;
}

export function toListedPrice({ routes }: Pick<Model, "routes">): ListedPrice {
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

/**
 * Converts micro-credits per million tokens to exact dollars per token: 150,000 is "0.00000015".
 */
export function dollarsPerToken(perMillion: number): string {
  const digits = String(perMillion).padStart(13, "0");
  const whole = digits.slice(0, -12);
  const rest = digits.slice(-12).replace(/0+$/, "");
  return rest === "" ? whole : `${whole}.${rest}`;
}
