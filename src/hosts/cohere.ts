import { baseUrlProblems } from "../core/built-in.ts";
import type { BuiltIn } from "../core/built-in.ts";
import { inBatches } from "../core/embedding-batches.ts";
import { httpProvider, post, sendOver, trimmedUrl } from "../core/http-provider.ts";
import type { Wire } from "../core/http-provider.ts";
import { listOf } from "../core/json-value.ts";
import type { Provider, ProviderFailure } from "../core/provider.ts";
import { sseReader } from "../core/sse-reader.ts";
import { httpFailure } from "../core/upstream-failure.ts";
import { chatAnswer, embedAnswer } from "../wires/cohere/answer.ts";
import { chatRequest, embedRequest } from "../wires/cohere/request.ts";
import { CohereStream } from "../wires/cohere/stream.ts";

const ID = "cohere";
const SECRET = "COHERE_API_KEY";
const BASE_URL = "COHERE_BASE_URL";
const TEXTS_MAX = 96;
/** Cohere's own status for a prompt that holds a denied token. */
const DENIED = 498;

/** Cohere's API v2. It has no host that promises a region. */
export const COHERE: BuiltIn = {
  id: ID,
  variables: [SECRET],
  isSet: (config) => config.secret(SECRET) !== undefined,
  tags: () => ["global"],
  problems: (config) => baseUrlProblems(config, BASE_URL),
  build: (config) =>
    cohere(config.secret(BASE_URL) ?? "https://api.cohere.com/v2", config.secret(SECRET) ?? ""),
};

/** The provider behind one address, which ends in the version. */
export function cohere(baseUrl: string, secret: string): Provider {
  const wire = wireOf(trimmedUrl(baseUrl), secret);
  const chat = httpProvider(wire);
  return {
    id: ID,
    send: (call) =>
      call.kind === "chat"
        ? chat.send(call)
        : inBatches(call, TEXTS_MAX, (one, texts) =>
            sendOver(wire, { ...one, body: { ...one.body, input: texts } }),
          ),
  };
}

function wireOf(base: string, secret: string): Wire {
  return {
    id: ID,
    streamType: "text/event-stream",
    async ask(call) {
      const isChat = call.kind === "chat";
      const request = isChat ? chatRequest(call) : embedRequest(call);
      if ("reason" in request) return request as ProviderFailure;
      return post(call, {
        url: base + (isChat ? "/chat" : "/embed"),
        headers: {
          accept: call.stream ? "text/event-stream" : "application/json",
          authorization: `Bearer ${secret}`,
        },
        body: JSON.stringify(request),
      });
    },
    answer: (raw, call) =>
      call.kind === "chat" ? chatAnswer(raw) : embedAnswer(raw, listOf(call.body["input"]).length),
    failureInside: () => null, // what has no message or vectors is no answer
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
  if (status !== DENIED) return httpFailure(status, headers, bodyText, secret);
  const failure = httpFailure(400, headers, bodyText, secret);
  return { ...failure, reason: String(status), code: "content_filter" };
}
