import { timestamp } from "../lib/clock.ts";
import { promptTokens } from "../lib/usage.ts";
import type { GenerationRecord } from "./wallet-contract.ts";

/** The JSON of a generation; `cost_micro` is what was charged, prices are micros per million tokens. */
export function generationView(generation: GenerationRecord): Readonly<Record<string, unknown>> {
  const { usage, price } = generation;
  return {
    id: generation.id,
    request_id: generation.id,
    created_at: timestamp(generation.createdAt),
    model: generation.model,
    provider: generation.provider,
    region: generation.region,
    key_id: generation.keyId,
    external_id: generation.externalId,
    streamed: generation.streamed,
    prompt_tokens: promptTokens(usage),
    cached_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    completion_tokens: usage.output,
    reasoning_tokens: usage.reasoning,
    cost_micro: generation.costMicro,
    price: {
      input: price.input,
      cached: price.cached,
      cache_write: price.cacheWrite,
      output: price.output,
    },
    first_byte_ms: generation.firstByteMs,
    duration_ms: generation.durationMs,
    estimated: generation.estimated,
    finish_reason: generation.finishReason,
  };
}
