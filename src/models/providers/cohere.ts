import { baseUrlProblems } from "../core/built-in.ts";
import type { BuiltInProvider } from "../core/built-in.ts";
import { batchEmbedder } from "../core/embedding-batches.ts";
import { httpProvider, postRequest, removeTrailingSlashes } from "../core/http-provider.ts";
import type { ProviderHandlers } from "../core/http-provider.ts";
import { isFailure } from "../core/provider.ts";
import type { JsonObject, Provider, ProviderCall, ProviderFailure } from "../core/provider.ts";
import { sseReader } from "../core/frame-reader.ts";
import { httpFailure } from "../core/upstream-failure.ts";
import {
  readCohereChat,
  readCohereEmbeddings,
  readCohereRerank,
  cohereRerankRequest,
  CohereStream,
} from "../protocols/cohere/answer.ts";
import { cohereChatRequest, cohereEmbedRequest } from "../protocols/cohere/request.ts";

const ID = "cohere";
const SECRET = "COHERE_API_KEY";
const BASE_URL = "COHERE_BASE_URL";
const TEXTS_MAX = 96;
const CONTENT_FILTER_STATUS = 498;

/** Cohere's API v2, which has no regional host. */
export const COHERE: BuiltInProvider = {
  id: ID,
  variables: [SECRET],
  isSet: (config) => config.secret(SECRET) !== undefined,
  tags: () => ["global"],
  problems: (config) => baseUrlProblems(config, BASE_URL),
  build: (config) =>
    cohere(config.secret(BASE_URL) ?? "https://api.cohere.com/v2", config.secret(SECRET) ?? ""),
};

export function cohere(baseUrl: string, secret: string): Provider {
  return httpProvider(createProtocol(removeTrailingSlashes(baseUrl), secret));
}

function createProtocol(base: string, secret: string): ProviderHandlers {
  const send = async (call: ProviderCall, path: string, request: JsonObject | ProviderFailure) => {
    if (isFailure(request)) return request;
    const accept = call.stream ? "text/event-stream" : "application/json";
    return postRequest(call, {
      url: base + path,
      headers: { accept, authorization: `Bearer ${secret}` },
      body: JSON.stringify(request),
    });
  };
  return {
    id: ID,
    streamType: "text/event-stream",
    chat: {
      send: (call) => send(call, "/chat", cohereChatRequest(call)),
      convertResponse: readCohereChat,
    },
    embeddings: {
      sendInParts: batchEmbedder(TEXTS_MAX),
      send: (call) => send(call, "/embed", cohereEmbedRequest(call)),
      convertResponse: readCohereEmbeddings,
    },
    rerank: {
      send: (call) => send(call, "/rerank", cohereRerankRequest(call)),
      convertResponse: readCohereRerank,
    },
    failureInBody: () => null, // Responses without content are rejected as invalid.
    failure: (status, headers, bodyText) => failureOf(status, headers, bodyText, secret),
    reader: () => sseReader(new CohereStream()),
  };
}

function failureOf(
  status: number,
  headers: Headers,
  bodyText: string,
  secret: string,
): ProviderFailure {
  if (status !== CONTENT_FILTER_STATUS) return httpFailure(status, headers, bodyText, secret);
  const failure = httpFailure(400, headers, bodyText, secret);
  return { ...failure, reason: String(status), code: "content_filter" };
}
