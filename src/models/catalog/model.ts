import type { Kind } from "../../shared/kinds.ts";
import type { Price } from "../../shared/usage.ts";

export type Ability = "tools" | "vision" | "reasoning" | "dimensions";

type LongPrompt = {
  readonly aboveTokens: number;
  readonly price: Price;
  readonly percents?: { readonly inputPercent: number; readonly outputPercent: number };
};

/** The start of a price (Unix ms) and its price list. Null for a configured price. */
export type PriceOrigin = { readonly from: number | null; readonly list: string | null };

/**
 * Limits of a route that are lower than the model's. Larger requests skip the route; prompts are
 * never truncated. Only the output cap is lowered.
 */
export type RouteLimits = {
  readonly context?: number;
  /** Maximum output tokens of one choice. A larger cap is lowered to it. */
  readonly maxOutput?: number;
  readonly choices?: number;
  readonly inputs?: number;
  readonly lacks?: readonly Ability[];
  /** The hold's multiple of the output cap, because xAI bills reasoning beyond the cap. */
  readonly outputFactor?: number;
  /** Reasoning tokens that may be billed in addition to each choice, however small its cap. */
  readonly reasoningTokens?: number;
};

/** A route of a model in this region, at the customer's price. */
export type Route = {
  readonly provider: string;
  readonly upstreamId: string;
  readonly price: Price;
  readonly dataRegion: string;
  readonly limits?: RouteLimits;
  /** Absent if the price doesn't depend on the prompt's length. */
  readonly longPrompt?: LongPrompt;
  readonly origin?: PriceOrigin;
  readonly bought?: { readonly price: Price; readonly longPrompt?: LongPrompt };
};

/** An active model in this region. Its active routes are in order of preference. */
export type Model = {
  readonly id: string;
  readonly kind: Kind;
  readonly ownedBy: string;
  readonly isConfigured?: true;
  readonly created: number;
  readonly context: number;
  /** Maximum output tokens of one choice; 0 for a kind without output tokens. */
  readonly maxOutput: number;
  /** Minimum accepted output cap; 1 without a limit. */
  readonly minOutput: number;
  /** Minimum thinking budget in tokens. The output cap must be larger. */
  readonly thinkingFloor?: number;
  readonly abilities: readonly Ability[];
  /** Prompt tokens of tools besides their text. Absent: OpenAI's. */
  readonly toolsTokens?: number;
  readonly imageTokens: number;
  readonly estimateFactor: number;
  readonly routes: readonly Route[];
};
