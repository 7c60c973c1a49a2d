import type { Percentiles } from "../../shared/route-speed.ts";
import { KINDS } from "../../shared/kinds.ts";
import { toListedPrice, parametersOf } from "./listed-model.ts";
import type { ListedModel, ListedPrice } from "./listed-model.ts";
import type { Model, Route } from "./model.ts";

/** A provider of a model in OpenRouter's format, at the caller's price. */
type ListedEndpoint = {
  readonly name: string;
  readonly model_id: string;
  readonly model_name: string;
  readonly provider_name: string;
  /** The provider's ID in routing preferences. */
  readonly tag: string;
  readonly data_region: string;
  readonly context_length: number;
  readonly max_completion_tokens: number | null;
  readonly max_prompt_tokens: null;
  readonly pricing: ListedPrice;
  readonly quantization: null;
  readonly supported_parameters: readonly string[];
  readonly supports_implicit_caching: boolean;
  readonly supports_tool_choice: Readonly<
    Record<"auto" | "none" | "required" | "function", boolean>
  >;
  /** Milliseconds to the first byte of a stream. */
  readonly latency_last_30m: Percentiles | null;
  readonly throughput_last_30m: Percentiles | null;
  readonly uptime_last_5m: null;
  readonly uptime_last_30m: null;
  readonly uptime_last_1d: null;
};

type PublicSpeed = Pick<ListedEndpoint, "latency_last_30m" | "throughput_last_30m">;

export function toListedEndpoint(
  { id }: Pick<ListedModel, "id">,
  model: Model,
  route: Route,
  speed: PublicSpeed,
): ListedEndpoint {
  const { provider, price, limits = {}, dataRegion } = route;
  const { lacks = [], context = model.context, maxOutput = model.maxOutput } = limits;
  const abilities = model.abilities.filter((ability) => !lacks.includes(ability));
  const takesTools = abilities.includes("tools");
  return {
    name: `${provider} | ${model.id}`,
    model_id: id,
    model_name: id,
    provider_name: provider,
    tag: provider,
    data_region: dataRegion,
    context_length: Math.min(context, model.context),
    max_completion_tokens: KINDS[model.kind].hasOutput
      ? Math.min(maxOutput, model.maxOutput)
      : null,
    max_prompt_tokens: null,
    pricing: toListedPrice({ routes: [route] }),
    quantization: null,
    supported_parameters: parametersOf({ kind: model.kind, abilities, routes: [route] }),
    // If clients must mark what to cache, cache writes cost more than input.
    supports_implicit_caching: price.cached < price.input && price.cacheWrite <= price.input,
    supports_tool_choice: {
      auto: takesTools,
      none: takesTools,
      required: takesTools,
      function: takesTools,
    },
    ...speed,
    uptime_last_5m: null,
    uptime_last_30m: null,
    uptime_last_1d: null,
  };
}
