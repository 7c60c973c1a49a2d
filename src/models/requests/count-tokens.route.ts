import type { Context } from "hono";
import { fail } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { TOKEN_COUNT_BYTES_MAX, readJson } from "../../shared/http/read-json.ts";
import { readBodyInMemorySlot } from "../../shared/http/request-slots.ts";
import { now } from "../../shared/clock.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { applyModelPolicies, resolveModel } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import { parseChatRequest } from "../core/core-request.ts";
import type { ChatBody, ChatMessage } from "../core/core-request.ts";
import { estimateTokensForDisplay } from "../../shared/close-tokens.ts";
import type { Provider } from "../core/provider.ts";
import { measureChatPrompt, measureNativePrompt } from "../core/prompt-size.ts";
import { getDeployment } from "./deployment.ts";
import { rejectOverloaded } from "./observe.route.ts";
import { toChatPromptFields } from "../protocols/messages/client-convert.ts";
import { ConversionLosses } from "../protocols/messages/client-tools.ts";
import { parseMessagesVersion } from "../endpoints/messages.ts";
import { parseBetaHeader, toClaudeNativeRequest } from "../protocols/messages/client-native.ts";
import { parseCountTokensRequest } from "../protocols/messages/client-request.ts";
import type { CountTokensBody } from "../protocols/messages/client-request.ts";

/**
 * Factor for estimates of Claude's tokens. If a count is too low, clients compact their
 * conversation too late.
 */
const CLAUDE_ESTIMATE_FACTOR = 1.1;
/** Tokens added for each message and for each request (from OpenAI's cookbook). */
const OVERHEAD_TOKENS = 3;
const PROVIDER_TIMEOUT_MS = 3000;

/**
 * Handles POST /v1/messages/count_tokens. Returns the provider's count on a native route, otherwise
 * our estimate. Counting is free but uses the rate limit.
 */
export async function countTokensRoute(c: Context<AppEnv>): Promise<Response> {
  const counted = await countTokens(c);
  return counted.ok ? c.json({ input_tokens: counted.value }) : fail(c, counted.failure);
}

async function countTokens(c: Context<AppEnv>): Promise<Result<number>> {
  const { paused, policies } = c.var.admitted;
  if (paused !== undefined) return refuse(paused);
  const version = parseMessagesVersion({
    header: (name) => c.req.header(name),
    query: () => undefined,
  });
  if (!version.ok) return version;
  const { numbers } = c.var.config;
  const limits = { bytesMax: TOKEN_COUNT_BYTES_MAX, timeoutMs: numbers.BODY_TIMEOUT_MS };
  const read = await readBodyInMemorySlot(c, readJson, limits);
  if ("shed" in read) return rejectOverloaded(c, read.shed);
  if (!read.ok) return read;
  const parsed = parseCountTokensRequest(read.value);
  if (!parsed.ok) return parsed;
  const body = parsed.value;
  const catalog = getDeployment(c.var.config).catalogAt(now(c.env));
  const resolved = resolveModel(catalog, body.model, "chat");
  if (!resolved.ok) return resolved;
  const allowed = applyModelPolicies(resolved.value, body.model, policies);
  if (!allowed.ok) return allowed;
  const counter = findCounter(c, body, allowed.value);
  const estimate = estimateCount(body, allowed.value, counter);
  if (!estimate.ok) return estimate;
  const providerCount = counter === null ? null : await countAtProvider(counter);
  return success(providerCount ?? estimate.value);
}

function estimateCount(
  body: CountTokensBody,
  model: Model,
  counter: Counter | null,
): Result<number> {
  const prompt = toChatPromptFields(body, new ConversionLosses(body));
  if (!prompt.ok) return prompt;
  const core = parseChatRequest({ model: body.model, ...prompt.value });
  if (!core.ok) return core;
  if (counter === null && model.ownedBy !== "anthropic") {
    return success(Math.ceil(estimateClosely(core.value, model)));
  }
  const { likely } =
    counter === null
      ? measureChatPrompt(core.value, model)
      : measureNativePrompt(counter.request.body, counter.request.weights, model);
  return success(Math.max(1, Math.ceil(likely * CLAUDE_ESTIMATE_FACTOR)));
}

function estimateClosely(
  { messages, tools, response_format: format }: ChatBody,
  model: Model,
): number {
  const texts = [tools, format].flatMap((field) => (field ? JSON.stringify(field) : []));
  let images = 0;
  for (const message of messages) {
    const { content } = message;
    for (const part of Array.isArray(content) ? content : [{ type: "text", text: content ?? "" }]) {
      if (part.type === "image_url") images++;
      else texts.push("text" in part ? part.text : "");
    }
    if (message.role === "assistant") texts.push(...assistantTexts(message));
  }
  return (
    estimateTokensForDisplay(texts.join("\n")) +
    OVERHEAD_TOKENS * (messages.length + 1) +
    images * model.imageTokens
  );
}

function assistantTexts(message: Extract<ChatMessage, { role: "assistant" }>): readonly string[] {
  const calls = (message.tool_calls ?? []).flatMap((call) =>
    call.type === "function" ? [call.function.name, call.function.arguments] : [],
  );
  return [message.reasoning_content ?? "", ...calls];
}

type ClaudeNativeRequest = Extract<
  ReturnType<typeof toClaudeNativeRequest>,
  { readonly ok: true }
>["value"];

/** A provider that serves Anthropic's protocol, and the request in that protocol. */
type Counter = {
  readonly provider: Provider;
  readonly upstreamId: string;
  readonly request: ClaudeNativeRequest;
};

function findCounter(c: Context<AppEnv>, body: CountTokensBody, { routes }: Model): Counter | null {
  const { providers } = getDeployment(c.var.config);
  const betas = parseBetaHeader(c.req.header("anthropic-beta"));
  for (const { provider: id, upstreamId } of routes) {
    const provider = providers.get(id);
    if (provider?.supportsProtocol?.("messages", upstreamId) !== true) continue;
    const request = toClaudeNativeRequest(body, betas);
    return request.ok ? { provider, upstreamId, request: request.value } : null;
  }
  return null;
}

async function countAtProvider({ provider, upstreamId, request }: Counter): Promise<number | null> {
  const { body, betas } = request;
  const headers = betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") };
  const signal = AbortSignal.timeout(PROVIDER_TIMEOUT_MS);
  return (await provider.countTokens?.(upstreamId, { body, headers }, signal)) ?? null;
}
