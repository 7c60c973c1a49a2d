import { parsePriceFields } from "../../shared/usage.ts";
import type { Price, Unit } from "../../shared/usage.ts";
import type { ModelAbility, RouteLimits } from "./model.ts";
import type { CallKindWithoutOutput, CallKind } from "../../shared/kinds.ts";
import type { Region } from "../../shared/regions.ts";

/** The region in which a provider guarantees to process data, or `global`. */
export type DataLocation = Region | "global";

/** The ID of a provider with routes in the catalog. */
export type ProviderId =
  | "anthropic"
  | "bedrock"
  | "cerebras"
  | "cohere"
  | "deepseek"
  | "elevenlabs"
  | "fireworks"
  | "google"
  | "groq"
  | "jina"
  | "mistral"
  | "openai"
  | "sandbox"
  | "together"
  | "vertex"
  | "voyage"
  | "workers-ai"
  | "xai"
  | "xai-us";

/** The price of a prompt longer than `above` tokens, in percent of the usual price. */
export type LongPromptRule = {
  readonly above: number;
  readonly inputPercent: number;
  readonly outputPercent: number;
};

/** A price with its first day, and the day on which it was read (`seenOn`). */
export type DatedPrice = { readonly from: string; readonly price: Price; readonly seenOn: string };

export type ModelRouteEntry = {
  readonly provider: ProviderId;
  readonly upstreamId: string;
  /**
   * Prices, oldest first. The first price also applies to earlier days. After a promotion, the
   * highest known price applies.
   */
  readonly prices: readonly [DatedPrice, ...DatedPrice[]];
  readonly until?: string;
  readonly regions: readonly DataLocation[];
  readonly uplift?: number;
  readonly longPrompt?: LongPromptRule;
  readonly limits?: RouteLimits;
};

export type CatalogEntry = {
  readonly id: string;
  readonly kind: CallKind;
  /**
   * The day of the first public release. For a few models, this is only the month, or the day on
   * which the price was read.
   */
  readonly released: string;
  readonly context: number;
  readonly maxOutput: number;
  readonly minOutput: number;
  readonly abilities: readonly ModelAbility[];
  readonly imageTokens: number;
  readonly estimateFactor: number;
  readonly thinkingFloor?: number;
  readonly toolsTokens?: number;
  readonly routes: readonly ModelRouteEntry[];
};

/** Maximum o200k tokens per estimated token, in any language. */
export const O200K_FACTOR = 1.15;
/** Maximum Gemini tokens per estimated token. */
export const GEMINI_FACTOR = 1.25;
/** Maximum number of an older Claude model's tokens per estimated token. */
export const CLAUDE_OLD_FACTOR = 1.4;
/**
 * Maximum tokens per estimated token for cl100k and similar open tokenizers (Llama, Mistral, Qwen,
 * DeepSeek, GLM, Kimi, Cohere).
 */
export const CL100K_FACTOR = 1.5;
/** Maximum tokens per estimated token for Claude 4.7 and later, and for unknown tokenizers. */
export const ESTIMATE_FACTOR_MAX = 1.65;
/**
 * Maximum prompt tokens that Claude adds to the tools' text. Unknown models use this number too.
 */
export const TOOLS_TOKENS_MAX = 700;
/** Maximum tokens of an image if the model's author publishes no maximum. */
export const UNKNOWN_IMAGE_TOKENS = 16_384;

/** The ability to call tools. */
export const T: readonly ModelAbility[] = ["tools"];
/** Abilities: tools and vision. */
export const TV: readonly ModelAbility[] = ["tools", "vision"];
/** Abilities: tools and reasoning. */
export const TR: readonly ModelAbility[] = ["tools", "reasoning"];
/** Abilities: tools, vision and reasoning. */
export const TVR: readonly ModelAbility[] = ["tools", "vision", "reasoning"];

/** A chat model's limits, abilities and token estimates. */
export type ChatFacts = readonly [
  contextTokens: number,
  maxOutputTokens: number,
  abilities: readonly ModelAbility[],
  estimateFactor?: number,
  imageTokens?: number,
];

/** Returns its arguments as an array. The formatter keeps a call's arguments on one line. */
export const facts = (...values: ChatFacts): ChatFacts => values;

/** Returns the catalog entry of a chat model. */
export function chatModel(
  id: string,
  released: string,
  [context, maxOutput, abilities, estimateFactor = CL100K_FACTOR, imageTokens]: ChatFacts,
  routes: readonly ModelRouteEntry[],
): CatalogEntry {
  return {
    id,
    kind: "chat",
    released,
    context,
    maxOutput,
    minOutput: 1,
    abilities,
    imageTokens: imageTokens ?? imageTokensOf(abilities),
    estimateFactor,
    routes,
  };
}

function imageTokensOf(abilities: readonly ModelAbility[]): number {
  return abilities.includes("vision") ? UNKNOWN_IMAGE_TOKENS : 0;
}

type ModelFactory = (
  id: string,
  released: string,
  context: number,
  routes: readonly ModelRouteEntry[],
) => CatalogEntry;

/** Returns a function that creates entries of models without output tokens. */
export function modelFactory(
  kind: CallKindWithoutOutput,
  abilities: readonly ModelAbility[] = [],
  estimateFactor = CL100K_FACTOR,
): ModelFactory {
  const fixed = { kind, abilities, estimateFactor, maxOutput: 0, minOutput: 1 };
  const imageTokens = imageTokensOf(abilities);
  return (id, released, context, routes) => {
    return { ...fixed, id, released, context, imageTokens, routes };
  };
}

/** Creates the entry of an embedding model whose vector size clients can choose. */
export const embeddingModel = modelFactory("embeddings", ["dimensions"]);
/** Creates the entry of an embedding model with a fixed vector size. */
export const fixedEmbeddingModel = modelFactory("embeddings");

/** Prices in dollars per million tokens. A missing cache price equals the input price. */
export type DollarPrices =
  | UnitDollarPrices
  | readonly [input: number]
  | readonly [input: number, output: number]
  | readonly [input: number, cached: number, output: number]
  | readonly [input: number, cached: number, cacheWrite: number, output: number];

/** Prices in dollars: per million tokens, characters or seconds, and per piece of other units. */
type UnitDollarPrices = { readonly [U in Unit | "input"]?: number };

/** A later price: its first day, the price, and the day on which the price was read. */
export type PriceChange = readonly [from: string, dollars: DollarPrices, seenOn: string];

type RouteOptions = Partial<
  Pick<ModelRouteEntry, "regions" | "uplift" | "longPrompt" | "until" | "limits">
> & { readonly later?: readonly PriceChange[] };

type MakeRoute = (
  provider: ProviderId,
  upstreamId: string,
  dollars: DollarPrices,
  more?: RouteOptions,
) => ModelRouteEntry;

/** Returns a function that makes routes with prices read on the given day. */
export function pricesSeenOn(pricedOn: string): MakeRoute {
  return (provider, upstreamId, dollars, { later = [], ...more } = {}) => {
    const first = { from: pricedOn, price: toMicroPrice(dollars), seenOn: pricedOn };
    const rest = later.map(([from, changed, seen]) => {
      return { from, price: toMicroPrice(changed), seenOn: seen };
    });
    return { provider, upstreamId, prices: [first, ...rest], regions: ["global"], ...more };
  };
}

function toMicroPrice(dollars: DollarPrices): Price {
  if (!isTokenDollars(dollars)) {
    const named = Object.entries(dollars).map(([name, each]) => [name, toMicros(each)]);
    return parsePriceFields(Object.fromEntries(named));
  }
  const [input, ...more] = dollars;
  const output = more.pop() ?? 0;
  const [cached = input, cacheWrite = input]: readonly number[] = more;
  return {
    input: toMicros(input),
    cached: toMicros(cached),
    cacheWrite: toMicros(cacheWrite),
    output: toMicros(output),
  };
}

function isTokenDollars(dollars: DollarPrices): dollars is Exclude<DollarPrices, UnitDollarPrices> {
  return Array.isArray(dollars);
}

function toMicros(dollars: number): number {
  return Math.round(dollars * 1_000_000);
}

const ONE_CHOICE: RouteLimits = { choices: 1 };
/**
 * xAI's limits. xAI's output cap doesn't limit reasoning, so the hold covers twice the cap and at
 * least 20,000 reasoning tokens.
 */
const XAI_LIMITS: RouteLimits = { outputFactor: 2, reasoningTokens: 20_000 };
const CHAT_LIMITS: { readonly [Id in ProviderId]?: RouteLimits } = {
  anthropic: ONE_CHOICE,
  bedrock: ONE_CHOICE,
  cerebras: ONE_CHOICE,
  cohere: ONE_CHOICE,
  deepseek: ONE_CHOICE,
  groq: ONE_CHOICE,
  "workers-ai": ONE_CHOICE,
  xai: XAI_LIMITS,
  "xai-us": XAI_LIMITS,
};

/**
 * Maximum texts on routes that accept one text per request. With six requests at a time and at most
 * 5 s per request, 128 texts take at most 120 s.
 */
const ONE_TEXT_LIMIT: RouteLimits = { inputs: 128 };

const IMAGE_LIMITS_BY_PROVIDER: ReadonlyMap<string, RouteLimits> = new Map<ProviderId, RouteLimits>(
  [
    ["google", { imageApi: "gemini" }],
    ["vertex", { imageApi: "gemini" }],
    ["xai", { imageApi: "xai" }],
    ["xai-us", { imageApi: "xai" }],
  ],
);

/** Returns a route's limits. For an operator's provider, pass its profile's name as `provider`. */
export function getProviderLimits(
  provider: string,
  { kind, upstreamId }: { readonly kind: CallKind; readonly upstreamId: string },
): RouteLimits {
  if (kind === "embeddings") return acceptsOneText(provider, upstreamId) ? ONE_TEXT_LIMIT : {};
  if (kind === "image") return IMAGE_LIMITS_BY_PROVIDER.get(provider) ?? {};
  if (kind !== "chat") return {};
  if (!Object.hasOwn(CHAT_LIMITS, provider) || NO_REASONING.test(upstreamId)) return {};
  return CHAT_LIMITS[provider as ProviderId] ?? {};
}

const NO_REASONING = /^grok-.*non-reasoning/;

/**
 * Reports whether a route accepts only one text per request: Vertex's Gemini models and Bedrock's
 * Amazon models.
 */
function acceptsOneText(provider: string, upstreamId: string): boolean {
  if (provider === "vertex") return upstreamId.startsWith("gemini-embedding");
  return provider === "bedrock" && !upstreamId.includes("cohere.");
}
