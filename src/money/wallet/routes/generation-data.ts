import { timestamp } from "../../../shared/clock.ts";
import type { FailedRequest } from "../../../shared/failed-request.ts";
import type { SettledGeneration, RequestRecord } from "../../../shared/contracts/wallet.ts";
import { dollarsOf } from "../../../shared/money.ts";
import { sumPromptTokens } from "../../../shared/usage.ts";

const UNKNOWN_FIELDS = {
  upstream_id: null,
  origin: "",
  api_type: null,
  router: null,
  native_finish_reason: null,
  session_id: null,
  service_tier: null,
  user_agent: null,
  http_referer: null,
  preset_id: null,
  workspace_id: null,
  web_search_engine: null,
  response_cache_source_id: null,
  upstream_inference_cost: null,
  cache_discount: null,
  moderation_latency: null,
  native_tokens_completion_images: null,
  num_media_prompt: null,
  num_input_audio_prompt: null,
  num_media_completion: null,
  num_search_results: null,
  num_fetches: null,
  app_id: null,
  is_byok: false,
} as const;

/** Returns a request in OpenRouter's generation format. */
export function generationDataView(request: RequestRecord) {
  const { id, createdAt, externalId, generation } = request;
  return {
    ...UNKNOWN_FIELDS,
    id,
    request_id: id,
    created_at: timestamp(createdAt),
    external_user: externalId,
    cancelled: (request.failed?.clientLeftMs ?? null) !== null,
    ...(generation === null ? unservedView(request) : servedView(generation)),
    ...tokensView(generation),
    provider_responses: attemptsView(request),
    skipped: generation?.skipped ?? request.failed?.skipped ?? [],
  };
}

function servedView(generation: SettledGeneration) {
  const cost = dollarsOf(generation.costMicro);
  return {
    model: generation.model,
    provider_name: generation.provider,
    data_region: generation.region,
    finish_reason: generation.finishReason,
    total_cost: cost,
    usage: cost,
    latency: generation.firstByteMs,
    generation_time: generation.durationMs,
    streamed: generation.streamed,
  };
}

function unservedView({ failed = null }: RequestRecord) {
  return {
    model: failed?.model ?? "",
    provider_name: null,
    data_region: "",
    finish_reason: null,
    total_cost: 0,
    usage: 0,
    latency: null,
    generation_time: failed?.durationMs ?? null,
    streamed: failed?.streamed ?? null,
  };
}

function tokensView(generation: RequestRecord["generation"]) {
  const usage = generation?.usage ?? null;
  const prompt = usage === null ? null : sumPromptTokens(usage);
  const output = usage?.output ?? null;
  return {
    tokens_prompt: prompt,
    tokens_completion: output,
    native_tokens_prompt: prompt,
    native_tokens_completion: output,
    native_tokens_reasoning: usage?.reasoning ?? null,
    native_tokens_cached: usage?.cacheRead ?? null,
  };
}

/**
 * Returns a request's provider calls: the failed calls, then the charged call unless it is one of
 * them.
 */
function attemptsView({ generation, failed }: RequestRecord) {
  const before = failed?.attempts ?? generation?.failed ?? [];
  const views = before.map(({ route, status = null, startedMs, endedMs }) => ({
    provider_name: route.slice(0, route.indexOf(":")),
    endpoint_id: route,
    status,
    latency: startedMs === undefined || endedMs === undefined ? null : endedMs - startedMs,
    is_byok: UNKNOWN_FIELDS.is_byok,
  }));
  if (generation === null || hasChargedAttempt(generation, failed)) return views;
  const { provider, firstByteMs } = generation;
  const served = {
    provider_name: provider,
    status: 200,
    latency: firstByteMs,
    is_byok: UNKNOWN_FIELDS.is_byok,
  };
  return [...views, served];
}

/** Reports whether `failed.attempts` includes the charged call, which `generation.failed` omits. */
export function hasChargedAttempt(
  generation: SettledGeneration,
  failed: FailedRequest | null | undefined,
): boolean {
  return (failed?.attempts.length ?? 0) > (generation.failed?.length ?? 0);
}
