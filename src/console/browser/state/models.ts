import { formatSpent } from "../lib/money.ts";
import type { Model } from "../api/types.ts";
import { useRead } from "./reads.ts";
import type { Read } from "./reads.ts";

/** Prices as texts, in dollars per token. The other fields are prices of units. */
export type Pricing = {
  readonly prompt: string;
  readonly completion: string;
  readonly input_cache_read: string;
  readonly input_cache_write: string;
  readonly [unit: string]: string;
};

/** A model of GET /v1/models. */
export type ListedModel = {
  readonly id: string;
  readonly kind: Model["kind"];
  readonly owned_by: string;
  readonly context_length: number;
  readonly max_output_tokens: number | null;
  readonly input_modalities: readonly string[];
  readonly pricing: Pricing;
  readonly next_price: (Pricing & { readonly from: string }) | null;
  readonly providers: readonly string[];
  readonly status: Model["status"];
  readonly alias_of?: string;
  readonly aliases?: readonly string[];
};

export function useModels(isRead = true): Read<{ readonly data: readonly ListedModel[] }> {
  return useRead(isRead ? "GET /v1/models" : null, {}, { every: 30_000 }) as Read<{
    readonly data: readonly ListedModel[];
  }>;
}

export function perMillion(dollars: string): string {
  return formatSpent(Math.round(Number(dollars) * 1e12));
}

export function modelHint({ alias_of, pricing }: ListedModel): string {
  const price = `${perMillion(pricing.prompt)} in, ${perMillion(pricing.completion)} out per million tokens`;
  return alias_of === undefined ? price : `now ${alias_of}: ${price}`;
}
