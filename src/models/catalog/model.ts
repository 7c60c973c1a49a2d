import type { Kind } from "../../shared/kinds.ts";
import type { Price } from "../../shared/usage.ts";

export type Ability = "tools" | "vision" | "reasoning" | "dimensions";

type LongPrompt = {
  readonly aboveTokens: number;
  readonly price: Price;
  readonly percents?: { readonly inputPercent: number; readonly outputPercent: number };
};

/**
 * The price list of a price, and the time from which the price applies (Unix ms). `list` is null
 * for a price of the built-in catalog.
 */
export type PriceOrigin = { readonly from: number | null; readonly list: string | null };

/**
 * Limits of a route that are lower than the model's. A request that exceeds them skips the route,
 * except that an output cap is lowered.
 */
export type RouteLimits = {
  readonly context?: number;
  readonly maxOutput?: number;
  readonly choices?: number;
  readonly inputs?: number;
  readonly lacks?: readonly Ability[];
  /**
   * The factor by which the hold multiplies the output cap, because xAI bills reasoning beyond the
   * cap.
   */
  readonly outputFactor?: number;
  /** The provider's API for images, if it isn't OpenAI's. */
  readonly imageApi?: "gemini" | "xai";
  /** Reasoning tokens that can be billed in addition to each choice, even if its cap is small. */
  readonly reasoningTokens?: number;
};

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

/** An active model in this region, with its active routes in the order of preference. */
export type Model = {
  readonly id: string;
  readonly kind: Kind;
  readonly ownedBy: string;
  readonly isConfigured?: true;
  readonly created: number;
  readonly context: number;
  readonly maxOutput: number;
  /** Minimum output cap that the provider accepts. 1 if there is no minimum. */
  readonly minOutput: number;
  /** Minimum thinking budget in tokens. The output cap must be larger. */
  readonly thinkingFloor?: number;
  readonly abilities: readonly Ability[];
  /**
   * Prompt tokens that the provider adds for tools, besides their text. If absent, OpenAI's number
   * applies.
   */
  readonly toolsTokens?: number;
  readonly imageTokens: number;
  readonly estimateFactor: number;
  readonly routes: readonly Route[];
};
