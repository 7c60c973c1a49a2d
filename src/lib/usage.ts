/**
 * What a request used, in tokens, without overlap: the prompt is `input + cacheRead + cacheWrite`
 * (input = uncached rest), `output` includes `reasoning`. Bill from these numbers only.
 */
export type Usage = {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Of `cacheWrite`, what is kept for an hour, at twice the price of input; absent: none. */
  readonly cacheWriteHour?: number;
  readonly output: number;
  readonly reasoning: number;
};

/** Prices in micros per million tokens. */
export type Price = {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly output: number;
};

export const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

export function promptTokens(usage: Usage): number {
  return usage.input + usage.cacheRead + usage.cacheWrite;
}
