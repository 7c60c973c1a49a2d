import { timestamp } from "../../shared/clock.ts";
import type { Price, Unit } from "../../shared/usage.ts";
import type { ModelAbility, Model, Route } from "./model.ts";
import { CALL_KINDS } from "../../shared/kinds.ts";
import type { Region } from "../../shared/regions.ts";
import { publicPercentiles } from "../../shared/route-speed.ts";
import type { RouteSpeed } from "../../shared/route-speed.ts";
import * as z from "zod/mini";
import {
  singleValueSchema,
  wholeNumberParameterWithDefault,
} from "../../shared/http/parse-body.ts";

/** A model or alias in `GET /v1/models`. Prices are strings in dollars per token. */
export type ListedModel = ReturnType<typeof toListedModel> & {
  readonly alias_of?: string;
  readonly aliases?: readonly string[];
};

type ListedPrice = {
  readonly prompt: string;
  readonly completion: string;
  readonly input_cache_read: string;
  readonly input_cache_write: string;
} & { readonly [U in Unit]?: string };

/** A model at the caller's price, and its price after the next announced change. */
export type PricedModel = {
  readonly model: Model;
  readonly next: { readonly from: number; readonly model: Model } | null;
};

const PARAMETERS_BY_ABILITY: Readonly<Record<ModelAbility, readonly string[]>> = {
  tools: ["tools", "tool_choice", "parallel_tool_calls"],
  vision: [],
  reasoning: ["reasoning_effort"],
  dimensions: ["dimensions"],
};

/** Reports whether requests currently avoid a route. */
export type CooldownCheck = (route: Pick<Route, "provider" | "upstreamId">) => boolean;

export function toListedModel(
  id: string,
  { model, next }: PricedModel,
  { region, isInCooldown }: { readonly region: Region; readonly isInCooldown: CooldownCheck },
) {
  const { kind, created, ownedBy, context, maxOutput, abilities, routes } = model;
  const { hasOutput } = CALL_KINDS[kind];
  const editsImages = routes.some(
    ({ price: { units = {} } }) => (units.input_image_token ?? units.input_image) !== undefined,
  );
  const inputs = editsImages || abilities.includes("vision") ? ["text", "image"] : ["text"];
  const output = hasOutput ? "text" : kind;
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
    // From here to `pricing`, the fields are those of OpenRouter's list.
    architecture: {
      modality: `${inputs.join("+")}->${output}`,
      input_modalities: inputs,
      output_modalities: [output],
      tokenizer: "Other",
      instruct_type: null,
    },
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
    /** The caller's price on the model's first route, for a prompt of usual length. */
    pricing: toListedPrice(model),
    next_price: next === null ? null : { from: timestamp(next.from), ...toListedPrice(next.model) },
    /** The region that returns this list. Others can also have the model. */
    regions: [region],
    providers: [...new Set(routes.map(({ provider }) => provider))],
    status: statusOf(routes.map(isInCooldown)),
  };
}

function parametersOf({
  kind,
  abilities,
  routes,
}: Pick<Model, "kind" | "abilities" | "routes">): readonly string[] {
  return [
    ...CALL_KINDS[kind].parameters,
    ...(kind === "chat" && routes.some(({ limits }) => limits?.choices !== 1) ? ["n"] : []),
    ...abilities.flatMap((ability) => PARAMETERS_BY_ABILITY[ability]),
  ];
}

function statusOf(inCooldown: readonly boolean[]): string {
  if (!inCooldown.includes(true)) return "operational";
  return inCooldown.includes(false) ? "degraded" : "unavailable";
}

export function toListedPrice({ routes }: Pick<Model, "routes">): ListedPrice {
  const price: Price = routes[0]?.price ?? { input: 0, output: 0, cached: 0, cacheWrite: 0 };
  const units = Object.entries(price.units ?? {});
  return {
    prompt: toDollarsPerToken(price.input),
    completion: toDollarsPerToken(price.output),
    input_cache_read: toDollarsPerToken(price.cached),
    input_cache_write: toDollarsPerToken(price.cacheWrite),
    ...Object.fromEntries(units.map(([unit, each]) => [unit, toDollarsPerToken(each)])),
  };
}

/** Converts micro-credits per million tokens to exact dollars per token. */
export function toDollarsPerToken(perMillion: number): string {
  const digits = String(perMillion).padStart(13, "0");
  const whole = digits.slice(0, -12);
  const rest = digits.slice(-12).replace(/0+$/, "");
  return rest === "" ? whole : `${whole}.${rest}`;
}

/** Returns one provider of a model in OpenRouter's format, with the caller's price. */
export function toListedEndpoint(
  { id }: Pick<ListedModel, "id">,
  model: Model,
  route: Route,
  { speed, isCooling }: { readonly speed: RouteSpeed | undefined; readonly isCooling: boolean },
) {
  const { provider, price, limits = {}, dataRegion } = route;
  const { lacks = [], context = model.context, maxOutput = model.maxOutput } = limits;
  const abilities = model.abilities.filter((ability) => !lacks.includes(ability));
  const takesTools = abilities.includes("tools");
  return {
    name: `${provider} | ${model.id}`,
    model_id: id,
    model_name: id,
    provider_name: provider,
    tag: provider, // The provider's ID in routing preferences.
    status: isCooling ? -1 : 0, // -1 means that requests avoid this provider.
    data_region: dataRegion,
    context_length: Math.min(context, model.context),
    max_completion_tokens: CALL_KINDS[model.kind].hasOutput
      ? Math.min(maxOutput, model.maxOutput)
      : null,
    max_prompt_tokens: null,
    pricing: toListedPrice({ routes: [route] }),
    quantization: null,
    supported_parameters: parametersOf({ kind: model.kind, abilities, routes: [route] }),
    // Providers whose cache writes cost more than input require cache marks, so caching isn't
    // implicit.
    supports_implicit_caching: price.cached < price.input && price.cacheWrite <= price.input,
    supports_tool_choice: {
      auto: takesTools,
      none: takesTools,
      required: takesTools,
      function: takesTools,
    },
    latency_last_30m: publicPercentiles(speed?.latency), // ms to a stream's first byte
    throughput_last_30m: publicPercentiles(speed?.throughput),
    uptime_last_5m: null,
    uptime_last_30m: null,
    uptime_last_1d: null,
  };
}

const id = z.optional(singleValueSchema);
export const messagesListQuerySchema = z.object({
  limit: wholeNumberParameterWithDefault(1, 1000, 20),
  after_id: id,
  before_id: id,
});

/** Returns a model in the format of Anthropic's Models API (@anthropic-ai/sdk 1.12). */
export function toMessagesModel(model: ListedModel) {
  return {
    type: "model",
    id: model.id,
    display_name: model.display_name,
    created_at: new Date(model.created * 1000).toISOString(),
    lifecycle: "active",
    line: null,
    max_input_tokens: model.context_length,
    max_tokens: model.max_output_tokens,
    deprecated_at: null,
    retires_at: null,
    capabilities: null,
  };
}

/**
 * Returns the page of chat models after or before an ID. Returns the first page for an unknown ID.
 */
export function toMessagesModelPage(
  models: readonly ListedModel[],
  { limit, after_id: after, before_id: before }: z.infer<typeof messagesListQuerySchema>,
) {
  const all = models.filter(({ kind }) => kind === "chat").map(toMessagesModel);
  const end = all.findIndex((model) => model.id === before);
  const begin = all.findIndex((model) => model.id === after) + 1;
  const isBackwards = after === undefined && end !== -1;
  const from = isBackwards ? Math.max(0, end - limit) : begin;
  const data = all.slice(from, isBackwards ? end : from + limit);
  return {
    data,
    has_more: isBackwards ? from > 0 : from + limit < all.length,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}
