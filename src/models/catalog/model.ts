import type { CallKind } from "../../shared/kinds.ts";
import type { Price } from "../../shared/usage.ts";

export type ModelAbility = "tools" | "vision" | "reasoning" | "dimensions";

type LongPrompt = {
  readonly aboveTokens: number;
  readonly price: Price;
  readonly percents?: { readonly inputPercent: number; readonly outputPercent: number };
};

/**
 * The source of a price: the time from which it applies (Unix ms), and its price list. `list` is
 * null for the built-in catalog.
 */
export type PriceOrigin = { readonly from: number | null; readonly list: string | null };

/**
 * Limits of a route that are lower than the model's, and the route's billing rules. An output cap is
 * lowered to the route's limit. Requests that exceed other limits skip the route.
 */
export type RouteLimits = {
  readonly context?: number;
  readonly maxOutput?: number;
  readonly choices?: number;
  readonly inputs?: number;
  readonly lacks?: readonly ModelAbility[];
  /** The held output as a multiple of the cap, because xAI bills reasoning beyond the cap. */
  readonly outputFactor?: number;
  /** The provider's API for images, if it isn't OpenAI's. */
  readonly imageApi?: "gemini" | "xai";
  /** Maximum reasoning tokens that a provider bills per choice in addition to the cap. */
  readonly reasoningTokens?: number;
};

/** One way to call a model: a provider, and the provider's name for the model. */
export type Route = {
  readonly provider: string;
  readonly upstreamId: string;
  readonly price: Price;
  readonly dataRegion: string;
  readonly limits?: RouteLimits;
  readonly longPrompt?: LongPrompt;
  readonly origin?: PriceOrigin;
  readonly bought?: { readonly price: Price; readonly longPrompt?: LongPrompt };
};

/** An active model in this region, with its active routes in order of preference. */
export type Model = {
  readonly id: string;
  readonly kind: CallKind;
  readonly ownedBy: string;
  readonly isConfigured?: true;
  readonly created: number;
  readonly context: number;
  readonly maxOutput: number;
  /** Minimum output cap that the provider accepts, or 1. */
  readonly minOutput: number;
  /** Minimum thinking budget in tokens. The output cap must be larger. */
  readonly thinkingFloor?: number;
  readonly abilities: readonly ModelAbility[];
  /** Prompt tokens that the provider adds to the tools' text. Default: OpenAI's number. */
  readonly toolsTokens?: number;
  readonly imageTokens: number;
  readonly estimateFactor: number;
  readonly routes: readonly Route[];
};
