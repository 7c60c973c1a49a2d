import type { Price } from "../../shared/usage.ts";
import type { Ability, RouteLimits } from "./model.ts";
import type { InputKind, Kind } from "../../shared/kinds.ts";
import type { Region } from "../../shared/regions.ts";

/** Where a provider's hosts promise to run: in a region, or nowhere in particular. */
export type HostTag = Region | "global";

/** The built-in providers that the catalog has routes to. */
export type ProviderId =
  | "anthropic"
  | "bedrock"
  | "cerebras"
  | "cohere"
  | "deepseek"
  | "fireworks"
  | "google"
  | "groq"
  | "mistral"
  | "openai"
  | "sandbox"
  | "together"
  | "vertex"
  | "voyage"
  | "workers-ai"
  | "xai"
  | "xai-us";

/** The dearer price of a whole request whose prompt is above so many tokens, in percent of the price. */
export type LongPromptRule = {
  readonly above: number;
  readonly inputPercent: number;
  readonly outputPercent: number;
};

/** A list price from a day on, UTC. */
export type DatedPrice = {
  readonly from: string;
  readonly price: Price;
  /** The day on which a source showed it. */
  readonly seenOn: string;
};

/** One way to run a model, wherever it may run, at the provider's list prices. */
export type RouteEntry = {
  readonly provider: ProviderId;
  /** The provider's own name for the model. */
  readonly upstreamId: string;
  /** Oldest first; the first holds before its day too. A promotion ends with the dearest price that is known after it. */
  readonly prices: readonly [DatedPrice, ...DatedPrice[]];
  /** The last day, UTC, on which the last price, or the model itself, is announced to be there. */
  readonly until?: string;
  /** The promises of the hosts that run it. */
  readonly regions: readonly HostTag[];
  /** Percent that a host with the promise of a region adds; the global one never does. */
  readonly uplift?: number;
  readonly longPrompt?: LongPromptRule;
  /** Where it falls short of the model, beside what `limitsOfProvider` says. */
  readonly limits?: RouteLimits;
};

/** A model: what the best of its routes can do, and the routes in order of preference. */
export type CatalogEntry = {
  /** maker/model. */
  readonly id: string;
  readonly kind: Kind;
  /** The day of its first public release; for a few it is known to the month only. */
  readonly released: string;
  /** Tokens. */
  readonly context: number;
  /** Most output tokens of one choice; 0 for a kind without output. */
  readonly maxOutput: number;
  readonly minOutput: number;
  readonly abilities: readonly Ability[];
  readonly imageTokens: number;
  readonly estimateFactor: number;
  readonly thinkingFloor?: number;
  readonly toolsTokens?: number;
  readonly routes: readonly RouteEntry[];
};

/**
 * Multipliers that make the token estimate a safe bound for a tokenizer, at its worst language.
 */
export const O200K = 1.15;
export const GEMINI = 1.25;
export const CLAUDE_OLD = 1.4;
/** cl100k, and every open tokenizer that is like it: Llama, Mistral, Qwen, DeepSeek, GLM, Kimi, Cohere. */
export const CL100K = 1.5;
/** Claude from 4.7 on, and what is not known. */
export const WIDEST = 1.65;
/** What Claude is told of tools beside their text, and the most where nobody says. */
export const WIDEST_TOOLS = 700;
/** Upper bound of one image's tokens where the maker says nothing. */
export const UNKNOWN_IMAGE = 16_384;

export const T: readonly Ability[] = ["tools"];
export const TV: readonly Ability[] = ["tools", "vision"];
export const TR: readonly Ability[] = ["tools", "reasoning"];
export const TVR: readonly Ability[] = ["tools", "vision", "reasoning"];

/** [tokens of context, most output tokens, abilities, estimate factor, tokens of an image] */
export type ChatFacts = readonly [number, number, readonly Ability[], number, number?];

/** A chat model; `id` is maker/model. */
export function chat(
  id: string,
  released: string,
  [context, maxOutput, abilities, estimateFactor, imageTokens = 0]: ChatFacts,
  routes: readonly RouteEntry[],
): CatalogEntry {
  return {
    id,
    kind: "chat",
    released,
    context,
    maxOutput,
    minOutput: 1,
    abilities,
    imageTokens,
    estimateFactor,
    routes,
  };
}

/** A model for embeddings; `dimensions` says whether a size may be asked for. */
export function embeddings(
  id: string,
  released: string,
  [context, dimensions, estimateFactor]: readonly [number, "any" | "fixed", number],
  routes: readonly RouteEntry[],
): CatalogEntry {
  const abilities: readonly Ability[] = dimensions === "any" ? ["dimensions"] : [];
  return inputOnlyModel("embeddings", id, { released, context, estimateFactor, abilities, routes });
}

/** A model of any kind without output; `id` is maker/model. */
export function inputOnlyModel(
  kind: InputKind,
  id: string,
  facts: Pick<CatalogEntry, "released" | "context" | "estimateFactor" | "abilities" | "routes">,
): CatalogEntry {
  return { id, kind, maxOutput: 0, minOutput: 1, imageTokens: 0, ...facts };
}

/**
 * Dollars per million tokens, as the providers print them: input, cached input, cache write, output.
 * Of three the middle one is cached input; a price that nobody names is that of input. One alone is
 * the input of embeddings, which have no output.
 */
export type Dollars =
  | readonly [input: number]
  | readonly [input: number, output: number]
  | readonly [input: number, cached: number, output: number]
  | readonly [input: number, cached: number, cacheWrite: number, output: number];

/** What a route costs from a day on, and the day on which a source showed that. */
export type PriceChange = readonly [from: string, dollars: Dollars, seenOn: string];

type More = Partial<Pick<RouteEntry, "regions" | "uplift" | "longPrompt" | "until" | "limits">> & {
  readonly later?: readonly PriceChange[];
};

type At = (provider: ProviderId, upstreamId: string, dollars: Dollars, more?: More) => RouteEntry;

/** Makes routes at prices that were seen on a day; on hosts that promise nothing unless said otherwise. */
export function pricesSeenOn(pricedOn: string): At {
  return (provider, upstreamId, dollars, { later = [], ...more } = {}) => {
    const first = { from: pricedOn, price: microPrice(dollars), seenOn: pricedOn };
    const rest = later.map(([from, changed, seen]) => {
      return { from, price: microPrice(changed), seenOn: seen };
    });
    return { provider, upstreamId, prices: [first, ...rest], regions: ["global"], ...more };
  };
}

/** Whole micros per million tokens. */
function microPrice([input, ...more]: Dollars): Price {
  const output = more.pop() ?? 0;
  const [cached = input, cacheWrite = input]: readonly number[] = more;
  return {
    input: micros(input),
    cached: micros(cached),
    cacheWrite: micros(cacheWrite),
    output: micros(output),
  };
}

function micros(dollars: number): number {
  return Math.round(dollars * 1_000_000);
}

const ONE_CHOICE: RouteLimits = { choices: 1 };
/**
 * xAI's cap bounds what is said, not the reasoning, which nothing bounds and which grows with the question: as much
 * as the cap is held for it, at least what hard ones were seen to take.
 */
const XAI: RouteLimits = { outputFactor: 2, reasoningTokens: 20_000 };
const LIMITS: { readonly [Id in ProviderId]?: RouteLimits } = {
  anthropic: ONE_CHOICE,
  bedrock: ONE_CHOICE,
  cerebras: ONE_CHOICE,
  cohere: ONE_CHOICE,
  deepseek: ONE_CHOICE,
  groq: ONE_CHOICE,
  "workers-ai": ONE_CHOICE,
  xai: XAI,
  "xai-us": XAI,
};

/**
 * Where a request takes one text. Six go at a time: 22 rounds of up to 5 s end within the 120 s that an
 * answer has. What is cut off there was billed to us for nothing.
 */
const ONE_TEXT: RouteLimits = { inputs: 128 };

/**
 * What a provider, or an operator's of the profile with its name, cannot do for any chat model: an `n` above 1, or to
 * bind reasoning by the cap; and for models for embeddings: many inputs at once.
 */
export function limitsOfProvider(
  provider: string,
  { kind, upstreamId }: { readonly kind: Kind; readonly upstreamId: string },
): RouteLimits {
  if (kind === "embeddings") return takesOneText(provider, upstreamId) ? ONE_TEXT : {};
  if (kind !== "chat") return {};
  if (!Object.hasOwn(LIMITS, provider) || NO_REASONING.test(upstreamId)) return {};
  return LIMITS[provider as ProviderId] ?? {};
}

/** xAI's models that do not reason. */
const NO_REASONING = /^grok-.*non-reasoning/;

/** Gemini's on Vertex, and Amazon's own on Bedrock. */
function takesOneText(provider: string, upstreamId: string): boolean {
  if (provider === "vertex") return upstreamId.startsWith("gemini-embedding");
  return provider === "bedrock" && !upstreamId.includes("cohere.");
}
