import { importHmacKey, hmacSha256 } from "../../shared/hmac.ts";
import type { HmacKey } from "../../shared/hmac.ts";
import { toBase64Url } from "../core/data-url.ts";
import type {
  Customer,
  ProviderCallOfKind,
  ChatCall,
  JsonObject,
  Provider,
  ProviderCall,
  ProviderFailure,
} from "../core/provider.ts";
import { createBatchEmbedder } from "../core/embedding-batches.ts";
import {
  createHttpProvider,
  sendPostRequest,
  sendCall,
  removeTrailingSlashes,
} from "../core/http-provider.ts";
import type { ProviderHandlers } from "../core/http-provider.ts";
import type { CallKindWithoutOutput } from "../../shared/kinds.ts";
import { BodyWithDownloadedImages, MultipartForm } from "../core/outgoing-body.ts";
import { createSseReader } from "../core/frame-reader.ts";
import {
  RESPONSES_ONLY_MODEL_PATTERN,
  parseResponsesApiFailure,
} from "../protocols/responses/host-rules.ts";
import { parseHttpFailure, parseStreamFailure } from "../core/upstream-failure.ts";
import { readChatCompletion, readEmbeddings } from "../protocols/chat/answer.ts";
import { ChatChunkReader } from "../protocols/chat/chunks.ts";
import { hasErrorField } from "../core/chat-message.ts";
import type { CallProtocol, HostProfile } from "../protocols/chat/profile.ts";
import {
  toOpenAiChatRequest,
  toOpenAiEmbeddingsRequest,
  ignoresEffortNoneByProfile,
} from "../protocols/chat/request.ts";
import type { UpstreamRequest } from "../protocols/chat/request.ts";
import { readBoundedText } from "../../shared/http/bounded-body.ts";
import {
  isObject,
  listOf,
  parseObject,
  readAnyValue,
  createObjectReader,
} from "../core/json-value.ts";
import { isProviderFailure } from "../core/provider.ts";
import { readNativeResponse, readResponsesCompletion } from "../protocols/responses/host-answer.ts";
import {
  findTooLargeEcho,
  toResponsesNativeBody,
  toResponsesApiRequest,
} from "../protocols/responses/host-request.ts";
import { ResponsesChunkReader, ResponsesNativeReader } from "../protocols/responses/host-stream.ts";

const HASHES_MAX = 512;

/**
 * Computes the hashes by which providers identify customers. The hashes include the organization,
 * because organizations must not share a provider's cache.
 */
class CustomerHashes {
  readonly #secret: string;
  /** Cached hashes. Without the cache, a hash takes most of a request's sending time. */
  readonly #hashes = new Map<string, Promise<string>>();
  #key: Promise<HmacKey> | null = null;

  constructor(secret: string | undefined) {
    this.#secret = secret ?? "";
  }

  hashUser({ orgId, user }: Customer): Promise<string> {
    return this.#hash(["user", orgId, user ?? ""]);
  }

  hashCacheKey({ orgId }: Customer, cacheKey: string): Promise<string> {
    return this.#hash(["cache", cacheKey, orgId]);
  }

  /** Returns the default cache key of an organization and model. */
  hashModelCacheKey({ orgId }: Customer, upstreamId: string): Promise<string> {
    return this.#hash(["cache of", upstreamId, orgId]);
  }

  #hash(parts: readonly string[]): Promise<string> {
    const text = JSON.stringify(parts);
    const cached = this.#hashes.get(text);
    if (cached !== undefined) return cached;
    if (this.#hashes.size >= HASHES_MAX) this.#hashes.clear();
    const hash = this.#computeHash(text);
    this.#hashes.set(text, hash);
    return hash;
  }

  async #computeHash(text: string): Promise<string> {
    this.#key ??= importHmacKey(`turnpike ${this.#secret}`);
    return toBase64Url(await hmacSha256(await this.#key, text));
  }
}

type OpenAiHost = {
  readonly id: string;
  /** For example `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly profile: HostProfile;
  /** The API key. If absent, no key is sent (Ollama, vLLM on a private network). */
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export function createOpenAiCompatibleProvider(host: OpenAiHost): Provider {
  const protocol = createProtocol(host);
  const { takesTokens = false, speaksResponses, summarizesThoughts = false } = host.profile;
  if (speaksResponses === true) return withResponses(protocol, createResponsesProtocol(host));
  return {
    ...createHttpProvider(protocol),
    takesTokens,
    summarizesThoughts,
    ignoresNone: (upstreamId) => ignoresEffortNoneByProfile(host.profile, upstreamId),
  };
}

/**
 * Adds OpenAI's Responses API to a provider, for requests in its format and models that require it.
 */
function withResponses(chat: ProviderHandlers, responses: ProviderHandlers): Provider {
  return {
    ...createHttpProvider(chat),
    takesTokens: true,
    acceptsFiles: true,
    summarizesThoughts: true,
    supportsProtocol: (protocol) => protocol === "responses",
    send: (call) => sendCall(needsResponses(call) ? responses : chat, call),
  };
}

function needsResponses(call: ProviderCall): boolean {
  return (
    call.kind === "chat" &&
    (call.native !== undefined || RESPONSES_ONLY_MODEL_PATTERN.test(call.upstreamId))
  );
}

function createProtocol(host: OpenAiHost): ProviderHandlers {
  const { id, baseUrl, profile, secret } = host;
  const base = removeTrailingSlashes(baseUrl);
  const streamHeaders = { accept: "text/event-stream", ...authHeaders(host) };
  const jsonHeaders = { accept: "application/json", ...authHeaders(host) };
  const hashes = new CustomerHashes(secret);
  const send: Send = async (call, path, request, extraHeaders) => {
    if (!("body" in request)) return request;
    const headers = { ...(call.stream ? streamHeaders : jsonHeaders), ...extraHeaders };
    const { body } = request;
    const isSerialized = body instanceof MultipartForm || body instanceof BodyWithDownloadedImages;
    const sent = isSerialized ? body : JSON.stringify(body);
    return sendPostRequest(call, { url: base + path, headers, body: sent });
  };
  return {
    id,
    streamType: "text/event-stream",
    chat: {
      send: async (call) => {
        const request = toOpenAiChatRequest(call, profile);
        if (!("body" in request)) return request;
        const { body, headers } = await withHashes(request.body, call, { profile, hashes });
        return send(call, "/chat/completions", { body }, headers);
      },
      convertResponse: (raw) => readChatCompletion(raw, profile.usageShape),
    },
    embeddings: {
      ...(profile.textsMax !== undefined && { sendInParts: createBatchEmbedder(profile.textsMax) }),
      send: (call) => send(call, "/embeddings", toOpenAiEmbeddingsRequest(call, profile)),
      convertResponse: readEmbeddings,
    },
    ...plainHandlers(profile.calls ?? {}, send, secret),
    failureInBody: (raw) => (hasErrorField(raw) ? parseStreamFailure(raw, secret) : null),
    failure: (status, headers, bodyText) => parseHttpFailure(status, headers, bodyText, secret),
    reader: ({ body }) => createSseReader(new ChatChunkReader(secret, profile.usageShape, body.n)),
  };
}
type Send = (
  call: ProviderCall,
  path: string,
  request:
    | UpstreamRequest
    | { readonly body: ReturnType<CallProtocol<CallKindWithoutOutput>["request"]> },
  headers?: Readonly<Record<string, string>>,
) => Promise<Response | ProviderFailure>;

/**
 * Replaces the client's cache key and end-user ID by hashes. All customers share the operator's
 * provider account, and could otherwise find each other's prompts in the provider's cache.
 */
async function withHashes(
  { prompt_cache_key: cacheKey, safety_identifier: clientIdentifier, ...rest }: JsonObject,
  { customer }: ChatCall,
  { profile, hashes }: { readonly profile: HostProfile; readonly hashes: CustomerHashes },
): Promise<{ readonly body: JsonObject; readonly headers?: Readonly<Record<string, string>> }> {
  if (customer === undefined) return { body: rest };
  const user = typeof clientIdentifier === "string" ? clientIdentifier : customer.user;
  const body = profile.chatFields.has("safety_identifier")
    ? { ...rest, safety_identifier: await hashes.hashUser({ ...customer, user }) }
    : rest;
  if (typeof cacheKey !== "string") return { body };
  const hash = await hashes.hashCacheKey(customer, cacheKey);
  const { cacheHeader } = profile;
  return cacheHeader === undefined
    ? { body: { ...body, prompt_cache_key: hash } }
    : { body, headers: { [cacheHeader]: hash } };
}

function plainHandlers(
  calls: NonNullable<HostProfile["calls"]>,
  send: Send,
  secret: string | undefined,
): Partial<ProviderHandlers> {
  const callByKind: [string, CallProtocol<CallKindWithoutOutput>][] = Object.entries(calls);
  const handlers = callByKind.map(([kind, plainCall]) => {
    const sendPlainCall = (call: ProviderCallOfKind<CallKindWithoutOutput>) => {
      const path = plainCall.otherPath?.(call) ?? plainCall.path;
      return send(call, path, { body: plainCall.request(call) });
    };
    const pieces = plainCall.pieces && {
      pieces: (call: ProviderCallOfKind<CallKindWithoutOutput>, headers: Headers) =>
        plainCall.pieces?.(secret, headers, call),
    };
    const reader = plainCall.reader && { reader: () => plainCall.reader?.(secret) };
    return [kind, { ...plainCall, send: sendPlainCall, ...pieces, ...reader }] as const;
  });
  return Object.fromEntries(handlers);
}

function authHeaders({ profile, secret, headers = {} }: OpenAiHost): Record<string, string> {
  if (secret === undefined) return headers;
  const { keyHeader } = profile;
  const key =
    keyHeader === undefined ? { authorization: `Bearer ${secret}` } : { [keyHeader]: secret };
  return { ...headers, ...key };
}

/**
 * Calls OpenAI's Responses API. OpenAI stores nothing, so clients send encrypted reasoning back.
 */
function createResponsesProtocol(host: OpenAiHost): ProviderHandlers {
  const { id, baseUrl, secret } = host;
  const url = `${removeTrailingSlashes(baseUrl)}/responses`;
  const headers = authHeaders(host);
  const hashes = new CustomerHashes(secret);
  return {
    id,
    streamType: "text/event-stream",
    chat: {
      async send(call) {
        const isNative = call.native !== undefined;
        const requested = isNative ? toResponsesNativeBody(call) : toResponsesApiRequest(call);
        if (isProviderFailure(requested)) return requested;
        const echoFailure = call.stream ? null : findTooLargeEcho(requested);
        if (echoFailure !== null) return echoFailure;
        const { prompt_cache_key: cacheKey, ...body } = requested;
        const fullBody = { ...body, ...(await identityOf(hashes, call, cacheKey)) };
        const accept = call.stream ? "text/event-stream" : "application/json";
        const send = (sent: JsonObject) =>
          sendPostRequest(call, {
            url,
            headers: { accept, ...headers },
            body: JSON.stringify(sent),
          });
        return retryWithoutReasoning(await send(fullBody), fullBody, send);
      },
      convertResponse: (raw, { native }) =>
        native === undefined
          ? readResponsesCompletion(raw, secret)
          : readNativeResponse(raw, secret),
    },
    failureInBody: (raw) => {
      const { error, output } = raw;
      return isObject(error) && !Array.isArray(output)
        ? parseResponsesApiFailure(raw, secret)
        : null;
    },
    failure: (status, given, bodyText) => parseHttpFailure(status, given, bodyText, secret),
    reader: ({ native }) =>
      createSseReader(
        native === undefined ? new ResponsesChunkReader(secret) : new ResponsesNativeReader(secret),
      ),
  };
}

const ERROR_BYTES_MAX = 64 * 1024;
const FOREIGN_REASONING_CODE = "invalid_encrypted_content";

const readType = createObjectReader({ type: readAnyValue });
const readErrorCode = createObjectReader({ error: createObjectReader({ code: readAnyValue }) });

type SendResult = Response | ProviderFailure;

async function retryWithoutReasoning(
  response: SendResult,
  body: JsonObject & { readonly input?: unknown },
  send: (body: JsonObject) => Promise<SendResult>,
): Promise<SendResult> {
  if (!(response instanceof Response) || response.status !== 400) return response;
  const input = listOf(body.input);
  const inputWithoutReasoning = input.filter((item) => readType(item).type !== "reasoning");
  if (inputWithoutReasoning.length === input.length) return response;
  const text = (await readBoundedText(response, ERROR_BYTES_MAX)) ?? "";
  if (readErrorCode(parseObject(text)).error.code === FOREIGN_REASONING_CODE) {
    return send({ ...body, input: inputWithoutReasoning });
  }
  return new Response(text, { status: response.status, headers: response.headers });
}

/** Returns `safety_identifier` and `prompt_cache_key`. `cacheKey` is the client's own cache key. */
async function identityOf(
  hashes: CustomerHashes,
  { customer, upstreamId }: ChatCall,
  cacheKey: unknown,
): Promise<JsonObject> {
  if (customer === undefined) return {};
  const [safety_identifier, prompt_cache_key] = await Promise.all([
    hashes.hashUser(customer),
    typeof cacheKey === "string"
      ? hashes.hashCacheKey(customer, cacheKey)
      : hashes.hashModelCacheKey(customer, upstreamId),
  ]);
  return { safety_identifier, prompt_cache_key };
}
