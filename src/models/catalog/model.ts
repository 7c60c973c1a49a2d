import type { Kind } from "../../shared/kinds.ts";
import type { Price } from "../../shared/usage.ts";

export type Ability = "tools" | "vision" | "reasoning" | "dimensions";

/**
 * The dearer price of the whole request when its prompt is longer than `aboveTokens`. `percents`: of the price for a
 * usual prompt, as the provider's list has them.
 */
type LongPrompt = {
  readonly aboveTokens: number;
  readonly price: Price;
  readonly percents?: { readonly inputPercent: number; readonly outputPercent: number };
};

/** Since when a price is in force, Unix ms, and by which price list; null: as long as it is configured, by none. */
export type PriceOrigin = { readonly from: number | null; readonly list: string | null };

/**
 * Where one route of a model falls short of the model. A request that needs more is not sent there,
 * nor is its prompt ever cut to fit; a lower `maxOutput` lowers its cap.
 */
export type RouteLimits = {
  /** Context window in tokens. */
  readonly context?: number;
  /** Most output tokens of one choice; a larger cap is lowered to it. */
  readonly maxOutput?: number;
  /** Most choices of one request (`n`). */
  readonly choices?: number;
  /** Most inputs of one embeddings request. */
  readonly inputs?: number;
  readonly lacks?: readonly Ability[];
  /** Billed output may be so many times the cap: xAI's cap does not bind reasoning, which it bills. */
  readonly outputFactor?: number;
  /** What may be billed of reasoning beside the output of each choice, however small its cap. */
  readonly reasoningTokens?: number;
};

/** One way to run a model here and what the customer pays there (markup included). */
export type Route = {
  readonly provider: string;
  /** The provider's own name for the model. */
  readonly upstreamId: string;
  readonly price: Price;
  /** What the route cannot do although the model can; absent where it can all of it. */
  readonly limits?: RouteLimits;
  /** Absent where the price does not depend on the prompt's length; see `priceAt`. */
  readonly longPrompt?: LongPrompt;
  readonly origin?: PriceOrigin;
  /** What the provider bills by its list, with what it adds for the region; absent where that is not known. */
  readonly bought?: { readonly price: Price; readonly longPrompt?: LongPrompt };
};

/** What can be bought in this region: a model with at least one live route, in order of preference. */
export type Model = {
  readonly id: string;
  readonly kind: Kind;
  readonly ownedBy: string;
  /** An entry of MODELS, at a price of its own. */
  readonly isConfigured?: true;
  /** Unix seconds, for the model list. */
  readonly created: number;
  /** Context window in tokens. */
  readonly context: number;
  /** Most output tokens of one choice; 0 for a kind without output. */
  readonly maxOutput: number;
  /** Least output cap the model accepts; 1 where it does not care. */
  readonly minOutput: number;
  /** Least tokens of thinking where it is asked for; the output cap must be larger. Absent: no such floor. */
  readonly thinkingFloor?: number;
  readonly abilities: readonly Ability[];
  /** Prompt tokens that tools cost beside their own text; absent: as OpenAI's. */
  readonly toolsTokens?: number;
  /** Upper bound of the prompt tokens one image can cost. */
  readonly imageTokens: number;
  /** Multiplier on the token estimate that makes it a safe bound for this model's tokenizer. */
  readonly estimateFactor: number;
  readonly routes: readonly Route[];
};
