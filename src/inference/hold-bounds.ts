import type { Model, Route } from "../catalog/model.ts";
import { priceAt } from "../catalog/price.ts";
import { assert } from "../lib/assert.ts";
import { micros } from "../lib/money.ts";
import type { Micros } from "../lib/money.ts";
import { estimateTokens, utf8Bytes } from "../lib/tokens.ts";
import { HOUR_WRITE_INPUTS } from "../lib/usage.ts";
import type { Price } from "../lib/usage.ts";
import type { ChatBody, ChatMessage, EmbeddingsBody } from "./core-request.ts";

const MESSAGE_OVERHEAD = 8;
const REQUEST_OVERHEAD = 16;
/** What a prompt is told of tools, or of a schema, beside their text. */
const TOOLS_TOKENS = 350;
const INPUT_OVERHEAD = 4;
/** Below this many bytes the hard bound is the estimate too: short texts are where estimates err most. */
const SHORT_PROMPT_BYTES = 512;

/**
 * A prompt's size in tokens, three ways. `bound` can never be passed: a byte-level BPE token is at
 * least one UTF-8 byte, images by the model's fixed bound. `estimate` is what it takes at most in
 * practice (reference: measured multipliers per tokenizer). `likely` is the best guess, for a charge
 * when the upstream reported no usage.
 */
export type PromptSize = {
  readonly bound: number;
  readonly estimate: number;
  readonly likely: number;
  /** Any of it may be kept in a cache for an hour, which costs twice the input. */
  readonly hourCache?: true;
};

export function chatPromptSize(body: ChatBody, model: Model): PromptSize {
  const tally = new Tally();
  for (const message of body.messages) tally.message(message, model);
  for (const field of [body.tools, body["functions"], body.response_format]) {
    if (field === undefined) continue;
    tally.overhead += model.toolsTokens ?? TOOLS_TOKENS;
    tally.text(JSON.stringify(field));
  }
  tally.overhead += REQUEST_OVERHEAD;
  return tally.size(model.estimateFactor);
}

export function embeddingsPromptSize(body: EmbeddingsBody, model: Model): PromptSize {
  const tally = new Tally();
  const inputs = typeof body.input === "string" ? [body.input] : body.input;
  for (const input of inputs) {
    if (typeof input === "number") tally.tokens += 1;
    else if (typeof input === "string") tally.text(input);
    else tally.tokens += input.length;
    if (typeof input !== "number") tally.overhead += INPUT_OVERHEAD;
  }
  return tally.size(model.estimateFactor);
}

/** True when a message holds an image. */
export function hasImages(body: ChatBody): boolean {
  return body.messages.some(
    (message) =>
      Array.isArray(message.content) && message.content.some((part) => part.type === "image_url"),
  );
}

type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly refusal: string }
  | { readonly type: "image_url" };

class Tally {
  overhead = 0;
  /** Tokens that are known exactly or only by a fixed bound: token arrays, images. */
  tokens = 0;
  #bytes = 0;
  #estimate = 0;

  text(text: string): void {
    this.#bytes += utf8Bytes(text);
    this.#estimate += estimateTokens(text);
  }

  message(message: ChatMessage, model: Model): void {
    this.overhead += MESSAGE_OVERHEAD;
    if (typeof message.content === "string") this.text(message.content);
    else this.parts(message.content ?? [], model);
    if (message.name) this.text(message.name);
    if (message.role === "tool") this.text(message.tool_call_id);
    if (message.role !== "assistant") return;
    this.text(message.reasoning_content ?? "");
    this.text(message.refusal ?? "");
    const { tool_calls: calls, function_call: call, reasoning_details: details } = message;
    for (const part of [calls, call, details]) {
      if (part) this.text(JSON.stringify(part));
    }
  }

  parts(parts: readonly Part[], model: Model): void {
    for (const part of parts) {
      if (part.type === "text") this.text(part.text);
      else if (part.type === "refusal") this.text(part.refusal);
      else this.tokens += model.imageTokens;
    }
  }

  size(factor: number): PromptSize {
    const fixed = this.overhead + this.tokens;
    const bound = this.#bytes + fixed;
    const short = this.#bytes <= SHORT_PROMPT_BYTES;
    return {
      bound,
      estimate: short ? bound : Math.min(bound, Math.ceil(this.#estimate * factor) + fixed),
      likely: Math.min(bound, Math.ceil(this.#estimate) + fixed),
    };
  }
}

/** Least useful output: a grant that cannot pay for this many tokens is refused instead. */
const LEAST_OUTPUT_TOKENS = 64;

/** What the output of one request may be, in tokens per choice. */
export type OutputCap = {
  /** What was asked or defaulted, at most the model's maximum. */
  readonly whole: number;
  /** Below this the request is refused rather than cut. */
  readonly least: number;
  readonly choices: number;
  /** Whether the client said what is the most; a default may be cut to what is left. */
  readonly isAsked: boolean;
};

/**
 * What one request may cost at its dearest route: hold at least `least`, at most `most`. `sure`: the least by
 * the prompt's hard bound instead of its estimate.
 */
export type Bounds = { readonly least: Micros; readonly sure: Micros; readonly most: Micros };

/** What a chat request says about its output; `thinks`: it asks for reasoning. */
export type AskedOutput = {
  readonly cap: number | null;
  readonly choices: number;
  readonly defaultCap: number;
  readonly thinks?: boolean;
};

/** The output cap of a chat request: the asked one, else DEFAULT_MAX_OUTPUT within the context window. */
export function outputCap(model: Model, prompt: PromptSize, asked: AskedOutput): OutputCap {
  const thought = asked.thinks === true ? (model.thinkingFloor ?? 0) + 1 : 1;
  const floor = Math.max(model.minOutput, thought);
  const room = Math.max(1, model.context - prompt.estimate);
  const wanted = asked.cap ?? Math.max(floor, Math.min(asked.defaultCap, room));
  const whole = Math.min(wanted, model.maxOutput);
  const least = Math.min(whole, Math.max(LEAST_OUTPUT_TOKENS, floor));
  return { whole, least, choices: asked.choices, isAsked: asked.cap !== null };
}

/** The least and the most that a request can cost, over every candidate route. */
export function costBounds(
  routes: readonly Route[],
  prompt: PromptSize,
  cap: OutputCap | null,
): Bounds {
  const choices = cap?.choices ?? 1;
  const worst = (promptTokens: number, allowed: number): number =>
    Math.max(
      ...routes.map((route) => {
        const tokens = billedOutput(route, capAt(route, allowed) * choices);
        return worstCost(heldPrice(route, prompt), { prompt, promptTokens }, tokens);
      }),
    );
  const least = worst(prompt.estimate, cap?.least ?? 0);
  const sure = worst(prompt.bound, cap?.least ?? 0);
  const most = worst(prompt.bound, cap?.whole ?? 0);
  assert(least <= sure && sure <= most, "the least cost passes the most");
  return { least: micros(least), sure: micros(sure), most: micros(most) };
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
  const whole = capAt(route, cap.whole);
  if (whole < cap.least) return null;
  for (const promptTokens of [prompt.bound, prompt.estimate]) {
    const tokens = tokensFor(route, { prompt, promptTokens, granted }) / BigInt(cap.choices);
    if (tokens >= BigInt(cap.least)) {
      return tokens >= BigInt(whole) ? whole : Number(tokens);
    }
  }
  return null;
}

/** An output cap as it may be sent to a route. */
function capAt(route: Route, allowed: number): number {
  return Math.min(allowed, route.limits?.maxOutput ?? allowed);
}

/** The price tier of the bound: the dearest that the request can come to. */
function heldPrice(route: Route, prompt: PromptSize): Price {
  return priceAt(route, prompt.bound);
}

/** A route's outputFactor is exact to a thousandth, rounded up. */
const FACTOR_SCALE = 1000;

/** The output that a route may bill where so many tokens are allowed. */
function billedOutput(route: Route, tokens: number): number {
  return Math.ceil((tokens * scaledFactor(route)) / FACTOR_SCALE);
}

function scaledFactor(route: Route): number {
  return Math.ceil((route.limits?.outputFactor ?? 1) * FACTOR_SCALE);
}

/**
 * Whole output tokens, of all choices together, whose billing is paid for after the prompt; exact, so in
 * big integers. -1 where not even the prompt is.
 */
function tokensFor(
  route: Route,
  held: { prompt: PromptSize; promptTokens: number; granted: Micros },
): bigint {
  const price = heldPrice(route, held.prompt);
  const forPrompt = BigInt(held.promptTokens) * BigInt(inputPrice(price, held.prompt));
  const left = BigInt(held.granted) * 1_000_000n - forPrompt;
  if (left < 0n) return -1n;
  if (price.output === 0) return BigInt(Number.MAX_SAFE_INTEGER);
  return ((left / BigInt(price.output)) * BigInt(FACTOR_SCALE)) / BigInt(scaledFactor(route));
}

/** Micros, rounded up. Input at its dearest: a cache discount is never held for. */
function worstCost(
  price: Price,
  { prompt, promptTokens }: { readonly prompt: PromptSize; readonly promptTokens: number },
  outputTokens: number,
): number {
  const sum =
    BigInt(promptTokens) * BigInt(inputPrice(price, prompt)) +
    BigInt(outputTokens) * BigInt(price.output);
  return Number((sum + 999_999n) / 1_000_000n);
}

function inputPrice(price: Price, { hourCache }: PromptSize): number {
  const hour = hourCache === true ? price.input * HOUR_WRITE_INPUTS : 0;
  return Math.max(price.input, price.cached, price.cacheWrite, hour);
}
