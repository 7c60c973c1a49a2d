import { spent } from "../lib/money.ts";
import type { Model } from "../api/types.ts";
import { useRead } from "./reads.ts";
import type { Read } from "./reads.ts";

/** A model as the list shows it, beyond what OpenAI's shape has. Prices in dollars for a token, as text. */
export type ListedModel = {
  readonly id: string;
  readonly kind: Model["kind"];
  readonly owned_by: string;
  readonly context_length: number;
  readonly max_output_tokens: number | null;
  readonly input_modalities: readonly string[];
  readonly pricing: {
    readonly prompt: string;
    readonly completion: string;
    readonly input_cache_read: string;
  };
  /** The next price that is announced, and from when on. */
  readonly next_price: {
    readonly from: string;
    readonly prompt: string;
    readonly completion: string;
  } | null;
  readonly providers: readonly string[];
  readonly alias_of?: string;
  readonly aliases?: readonly string[];
};

/** Returns the models for sale to this session. */
export function useModels(isRead = true): Read<{ readonly data: readonly ListedModel[] }> {
  return useRead(isRead ? "GET /v1/models" : null) as Read<{
    readonly data: readonly ListedModel[];
  }>;
}

/** Dollars for a million tokens. */
export function perMillion(dollars: string): string {
  return spent(Math.round(Number(dollars) * 1e12));
}

/** The day on which a model's price changes, and to what; none: "". */
export function nextPrice({ next_price: next }: ListedModel): string {
  if (next === null) return "";
  const { from, prompt, completion } = next;
  return `${from.slice(0, 10)}: ${perMillion(prompt)} in, ${perMillion(completion)} out`;
}

/** Returns a model's price, or an alias's meaning. */
export function modelHint({ alias_of, pricing }: ListedModel): string {
  const price = `${perMillion(pricing.prompt)} in, ${perMillion(pricing.completion)} out per million tokens`;
  return alias_of === undefined ? price : `now ${alias_of}: ${price}`;
}
