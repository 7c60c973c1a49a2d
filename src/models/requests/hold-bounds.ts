import type { Model, Route } from "../catalog/model.ts";
import { getPriceForPrompt } from "../catalog/price.ts";
import { assert } from "../../shared/assert.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
import { COUNTED_UNITS, HOUR_CACHE_PRICE_FACTOR } from "../../shared/usage.ts";
import type { Price } from "../../shared/usage.ts";
import { JSON_RESPONSE_BYTES_MAX, estimateResponseBytesPerToken } from "../core/response-size.ts";
import type { ChatBody } from "../core/core-request.ts";
import type { ParsedRequest } from "../core/endpoint-adapter.ts";
import type { PromptSize } from "../core/prompt-size.ts";

/** Minimum useful output. A request that can't get this many tokens is rejected. */
const MIN_OUTPUT_TOKENS = 64;

/** The output cap and its minimum in tokens, and the number of choices. */
export type OutputCap = {
  /** The requested output cap or the default, at most the model's maximum. */
  readonly whole: number;
  readonly least: number;
  readonly choices: number;
  /**
   * Whether the client set the cap. Credits can lower it, but token limits and the context window
   * can't.
   */
  readonly isAsked: boolean;
};

/**
 * Cost bounds of the most expensive route. `least` covers the minimum output and the estimated
 * prompt tokens. `sure` uses the prompt's upper bound instead of the estimate.
 */
export type CostBounds = { readonly least: Micros; readonly sure: Micros; readonly most: Micros };

type RequestedOutput = {
  readonly cap: number | null;
  readonly choices: number;
  readonly defaultCap: number;
  readonly thinks?: boolean;
  readonly least?: number;
};

export function computeOutputCap(
  model: Model,
  prompt: PromptSize,
  requested: RequestedOutput,
): OutputCap {
  const reasoningMin = requested.thinks === true ? (model.thinkingFloor ?? 0) + 1 : 1;
  const floor = Math.max(model.minOutput, reasoningMin, requested.least ?? 0);
  const contextLeft = Math.max(1, model.context - prompt.estimate);
  const requestedCap =
    requested.cap ?? Math.max(floor, Math.min(requested.defaultCap, contextLeft));
  const whole = Math.min(requestedCap, model.maxOutput);
  const least = Math.min(whole, Math.max(MIN_OUTPUT_TOKENS, floor));
  return { whole, least, choices: requested.choices, isAsked: requested.cap !== null };
}

const RESPONSES_OUTPUT_COPIES = 4;

/**
 * Returns an output cap whose buffered response fits in memory. If the cap is too high, lowers a
 * default cap, but returns 400 for a client's cap.
 */
export function limitCapToMemory(
  cap: OutputCap,
  body: ChatBody,
  parsed: ParsedRequest,
): Result<OutputCap> {
  const mayBeLarge = cap.choices > 1 || body.logprobs === true;
  const bytesMax = mayBeLarge ? bufferedBytesMax(body, parsed) : null;
  if (bytesMax === null) return success(cap);
  const tokensMax = Math.floor(bytesMax / estimateResponseBytesPerToken(body) / cap.choices);
  if (cap.whole <= tokensMax) return success(cap);
  if (!cap.isAsked && cap.least <= tokensMax) return success({ ...cap, whole: tokensMax });
  const times = cap.choices > 1 ? `${cap.choices} times ` : "";
  const message = `A response of ${times}${cap.whole} tokens is too large. Request at most ${tokensMax} tokens`;
  return body.logprobs === true
    ? invalid(`${message}, or fewer 'top_logprobs'.`, "logprobs")
    : invalid(`${message}, fewer choices, or a stream.`, "n");
}

function bufferedBytesMax({ logprobs }: ChatBody, { reply, native }: ParsedRequest): number | null {
  if (reply.kind === "json") return JSON_RESPONSE_BYTES_MAX;
  const isRepeated = logprobs === true && native?.wire === "responses";
  return isRepeated ? JSON_RESPONSE_BYTES_MAX / RESPONSES_OUTPUT_COPIES : null;
}

export function computeCostBounds(
  routes: readonly Route[],
  prompt: PromptSize,
  cap: OutputCap | null,
): CostBounds {
  const choices = cap?.choices ?? 1;
  const maximumCostOf = (promptTokens: number, allowed: number): number =>
    Math.max(
      ...routes.map((route) => {
        const tokens = computeMaxBilledTokens(
          route,
          computeRouteCap(route, { prompt, cap, allowed }),
          choices,
        );
        return maximumCost(
          getPriceForPrompt(route, prompt.bound),
          { prompt, promptTokens },
          tokens,
        );
      }),
    );
  const least = maximumCostOf(prompt.estimate, cap?.least ?? 0);
  const sure = maximumCostOf(prompt.bound, cap?.least ?? 0);
  const most = maximumCostOf(prompt.bound, cap?.whole ?? 0);
  assert(least <= sure && sure <= most, "the least cost passes the most");
  return { least: micros(least), sure: micros(sure), most: micros(most) };
}

/**
 * Returns the output tokens per choice that a grant covers on a route, or null for too few tokens.
 * Subtracts the prompt's upper bound, or the prompt's estimate if the bound leaves too little.
 */
export function computeAffordableCap(
  route: Route,
  prompt: PromptSize,
  cap: OutputCap,
  grantedMicro: Micros,
): number | null {
  const whole = computeRouteCap(route, { prompt, cap, allowed: cap.whole });
  if (whole < cap.least) return null;
  for (const promptTokens of [prompt.bound, prompt.estimate]) {
    const billedTokens = affordableTokens(route, { prompt, promptTokens, granted: grantedMicro });
    const tokens = largestCap(route, billedTokens, cap.choices);
    if (tokens >= BigInt(cap.least)) {
      return tokens >= BigInt(whole) ? whole : Number(tokens);
    }
  }
  return null;
}

/** Returns the route's output cap. A default cap leaves room for the prompt. */
export function computeRouteCap(
  { limits }: Route,
  {
    prompt,
    cap,
    allowed,
  }: { readonly prompt: PromptSize; readonly cap: OutputCap | null; readonly allowed: number },
): number {
  const most = Math.min(allowed, limits?.maxOutput ?? allowed);
  if (limits?.context === undefined || cap === null || cap.isAsked) return most;
  return Math.min(most, Math.max(cap.least, limits.context - prompt.estimate));
}

const FACTOR_SCALE = 1000;

/** Returns the maximum output tokens that a route bills for a cap, including separate reasoning. */
export function computeMaxBilledTokens(route: Route, cap: number, choices: number): number {
  const extraReasoning = route.limits?.reasoningTokens ?? 0;
  const scaledTokens = Math.ceil((cap * choices * scaledFactor(route)) / FACTOR_SCALE);
  return Math.max(scaledTokens, (cap + extraReasoning) * choices);
}

/**
 * Returns the largest cap per choice for which at most `billedTokens` are billed. Can be negative.
 */
function largestCap(route: Route, billedTokens: bigint, choices: number): bigint {
  const capByFactor = (billedTokens * BigInt(FACTOR_SCALE)) / BigInt(scaledFactor(route) * choices);
  const capBesidesReasoning =
    billedTokens / BigInt(choices) - BigInt(route.limits?.reasoningTokens ?? 0);
  return capByFactor < capBesidesReasoning ? capByFactor : capBesidesReasoning;
}

function scaledFactor(route: Route): number {
  return Math.ceil((route.limits?.outputFactor ?? 1) * FACTOR_SCALE);
}

/** Returns the output tokens that the grant covers, or -1 if it doesn't cover the prompt. */
function affordableTokens(
  route: Route,
  held: { prompt: PromptSize; promptTokens: number; granted: Micros },
): bigint {
  const price = getPriceForPrompt(route, held.prompt.bound);
  const promptCost = BigInt(held.promptTokens) * BigInt(getHighestInputPrice(price, held.prompt));
  const remaining = BigInt(held.granted) * 1_000_000n - promptCost - unitsCost(price, held.prompt);
  if (remaining < 0n) return -1n;
  if (price.output === 0) return BigInt(Number.MAX_SAFE_INTEGER);
  return remaining / BigInt(price.output);
}

/**
 * Returns the maximum cost in micro-credits, rounded up. Uses the highest input price, without a
 * cache discount.
 */
function maximumCost(
  price: Price,
  { prompt, promptTokens }: { readonly prompt: PromptSize; readonly promptTokens: number },
  outputTokens: number,
): number {
  const sum =
    BigInt(promptTokens) * BigInt(getHighestInputPrice(price, prompt)) +
    BigInt(outputTokens) * BigInt(price.output) +
    unitsCost(price, prompt);
  return Number((sum + 999_999n) / 1_000_000n);
}

function unitsCost({ units: prices }: Price, { units: counts = {} }: PromptSize): bigint {
  if (prices === undefined) return 0n;
  return COUNTED_UNITS.reduce(
    (sum, unit) => sum + BigInt(counts[unit] ?? 0) * BigInt(prices[unit] ?? 0),
    BigInt(prices.request ?? 0),
  );
}

export function getHighestInputPrice(price: Price, { hourCache }: PromptSize): number {
  const hour = hourCache === true ? price.input * HOUR_CACHE_PRICE_FACTOR : 0;
  return Math.max(price.input, price.cached, price.cacheWrite, hour);
}
