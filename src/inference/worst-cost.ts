import { assert } from "../lib/assert.ts";
import type { Micros } from "../lib/money.ts";
import { micros } from "../lib/money.ts";
import type { Price } from "../lib/usage.ts";
import type { Model, Route } from "../catalog/model.ts";
import { priceAt } from "../catalog/price.ts";
import type { PromptSize } from "./prompt-size.ts";

/** Least useful output: a grant that cannot pay for this many tokens is refused instead. */
const LEAST_OUTPUT_TOKENS = 64;

/** What the output of one request may be, in tokens per choice. */
export type OutputCap = {
  /** What was asked or defaulted, at most the model's maximum. */
  readonly whole: number;
  /** Below this the request is refused rather than cut. */
  readonly least: number;
  readonly choices: number;
};

/** What one request may cost at its dearest route: hold at least `least`, at most `most`. */
export type Bounds = { readonly least: Micros; readonly most: Micros };

/** The output cap of a chat request: the asked one, else DEFAULT_MAX_OUTPUT within the context window. */
export function outputCap(
  model: Model,
  prompt: PromptSize,
  asked: { cap: number | null; choices: number; defaultCap: number },
): OutputCap {
  const room = Math.max(1, model.context - prompt.estimate);
  const wanted = asked.cap ?? Math.max(model.minOutput, Math.min(asked.defaultCap, room));
  const whole = Math.min(wanted, model.maxOutput);
  const least = Math.min(whole, Math.max(LEAST_OUTPUT_TOKENS, model.minOutput));
  return { whole, least, choices: asked.choices };
}

/** The least and the most that a request can cost, over every candidate route. */
export function costBounds(
  routes: readonly Route[],
  prompt: PromptSize,
  cap: OutputCap | null,
): Bounds {
  const output = (tokens: number | undefined): number => (tokens ?? 0) * (cap?.choices ?? 1);
  const worst = (promptTokens: number, outputTokens: number): number =>
    Math.max(
      ...routes.map((route) => worstCost(heldPrice(route, prompt), promptTokens, outputTokens)),
    );
  const least = worst(prompt.estimate, output(cap?.least));
  const most = worst(prompt.bound, output(cap?.whole));
  assert(least <= most, "the least cost passes the most");
  return { least: micros(least), most: micros(most) };
}

/**
 * The output cap, in tokens per choice, that a grant pays for at one route: what it leaves after the
 * prompt's hard bound or, only if that is below the least cap, after its estimate. Null when even
 * that is below the least cap: the route cannot be used. 0 is never a cap.
 */
export function affordableCap(
  route: Route,
  prompt: PromptSize,
  cap: OutputCap,
  granted: Micros,
): number | null {
  const price = heldPrice(route, prompt);
  for (const promptTokens of [prompt.bound, prompt.estimate]) {
    const tokens = tokensFor(price, granted, promptTokens, cap.choices);
    if (tokens >= BigInt(cap.least)) {
      return tokens >= BigInt(cap.whole) ? cap.whole : Number(tokens);
    }
  }
  return null;
}

/** The price tier of the bound: the dearest that the request can come to. */
function heldPrice(route: Route, prompt: PromptSize): Price {
  return priceAt(route, prompt.bound);
}

/** Whole output tokens per choice that are paid for after the prompt; exact, so in big integers. */
function tokensFor(price: Price, granted: Micros, promptTokens: number, choices: number): bigint {
  const left = BigInt(granted) * 1_000_000n - BigInt(promptTokens) * BigInt(inputPrice(price));
  if (left < 0n) return -1n;
  if (price.output === 0) return BigInt(Number.MAX_SAFE_INTEGER);
  return left / (BigInt(price.output) * BigInt(choices));
}

/** Micros, rounded up. Input at its dearest: a cache discount is never held for. */
function worstCost(price: Price, promptTokens: number, outputTokens: number): number {
  const sum =
    BigInt(promptTokens) * BigInt(inputPrice(price)) + BigInt(outputTokens) * BigInt(price.output);
  return Number((sum + 999_999n) / 1_000_000n);
}

function inputPrice(price: Price): number {
  return Math.max(price.input, price.cached, price.cacheWrite);
}
