import { findBaseUrlProblems } from "../core/built-in.ts";
import type { BuiltInProvider } from "../core/built-in.ts";
import { createBatchEmbedder } from "../core/embedding-batches.ts";
import {
  createHttpProvider,
  sendPostRequest,
  removeTrailingSlashes,
} from "../core/http-provider.ts";
import type { ProviderHandlers } from "../core/http-provider.ts";
import { isProviderFailure } from "../core/provider.ts";
import type { JsonObject, Provider, ProviderCall, ProviderFailure } from "../core/provider.ts";
import { createSseReader } from "../core/frame-reader.ts";
import { parseHttpFailure } from "../core/upstream-failure.ts";
import {
  readCohereChat,
  readCohereEmbeddings,
  readCohereRerank,
  toCohereRerankRequest,
  CohereStream,
} from "../protocols/cohere/answer.ts";
import { toCohereChatRequest, toCohereEmbedRequest } from "../protocols/cohere/request.ts";

const ID = "cohere";
const SECRET = "COHERE_API_KEY";
const BASE_URL = "COHERE_BASE_URL";
const TEXTS_MAX = 96;
const CONTENT_FILTER_STATUS = 498;

/** Cohere's API v2, which has no regional host. */
export const COHERE_PROVIDER: BuiltInProvider = {
  id: ID,
  variables: [SECRET],
  isSet: (config) => config.secret(SECRET) !== undefined,
  tags: () => ["global"],
  problems: (config) => findBaseUrlProblems(config, BASE_URL),
  build: (config) =>
    createCohereProvider(
      config.secret(BASE_URL) ?? "https://api.cohere.com/v2",
      config.secret(SECRET) ?? "",
    ),
};

export function createCohereProvider(baseUrl: string, secret: string): Provider {
  return createHttpProvider(createProtocol(removeTrailingSlashes(baseUrl), secret));
}

function createProtocol(base: string, secret: string): ProviderHandlers {
  const send = async (call: ProviderCall, path: string, request: JsonObject | ProviderFailure) => {
    if (isProviderFailure(request)) return request;
    const accept = call.stream ? "text/event-stream" : "application/json";
    return sendPostRequest(call, {
      url: base + path,
      headers: { accept, authorization: `Bearer ${secret}` },
      body: JSON.stringify(request),
    });
  };
  return {
    id: ID,
    streamType: "text/event-stream",
    chat: {
      send: (call) => send(call, "/chat", toCohereChatRequest(call)),
      convertResponse: readCohereChat,
    },
    embeddings: {
      sendInParts: createBatchEmbedder(TEXTS_MAX),
      send: (call) => send(call, "/embed", toCohereEmbedRequest(call)),
      convertResponse: readCohereEmbeddings,
    },
    rerank: {
      send: (call) => send(call, "/rerank", toCohereRerankRequest(call)),
      convertResponse: readCohereRerank,
    },
    failureInBody: () => null, // Responses without content are rejected as invalid.
    failure: (status, headers, bodyText) => failureOf(status, headers, bodyText, secret),
    reader: () => createSseReader(new CohereStream()),
  };
}

function failureOf(
  status: number,
  headers: Headers,
  bodyText: string,
  secret: string,
): ProviderFailure {
  if (status !== CONTENT_FILTER_STATUS) return parseHttpFailure(status, headers, bodyText, secret);
  const failure = parseHttpFailure(400, headers, bodyText, secret);
  return { ...failure, reason: String(status), code: "content_filter" };
}
