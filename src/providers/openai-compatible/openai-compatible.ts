import { httpProvider, post, trimmedUrl } from "../http-provider.ts";
import type { Wire } from "../http-provider.ts";
import type { JsonObject, Provider } from "../provider.ts";
import { sseReader } from "../sse-reader.ts";
import { httpFailure, streamFailure } from "../upstream-failure.ts";
import { chatAnswer, embeddingsAnswer, inputCount } from "./answer.ts";
import { ChunkReader } from "./chunks.ts";
import type { Profile } from "./profile.ts";
import { upstreamRequest } from "./request.ts";

/** One host that speaks OpenAI's API. */
export type OpenAiHost = {
  readonly id: string;
  /** Ends in the version, e.g. `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly profile: Profile;
  /** Without one no Authorization header is sent (Ollama, vLLM on a private network). */
  readonly secret?: string;
};

/** The adapter for every host that speaks OpenAI's chat completions and embeddings. */
export function openAiCompatible(host: OpenAiHost): Provider {
  return httpProvider(wireOf(host));
}

function wireOf({ id, baseUrl, profile, secret }: OpenAiHost): Wire {
  const base = trimmedUrl(baseUrl);
  return {
    id,
    streamType: "text/event-stream",
    ask: (call) =>
      post(call, {
        url: base + (call.kind === "chat" ? profile.chatPath : profile.embeddingsPath),
        headers: {
          accept: call.stream ? "text/event-stream" : "application/json",
          ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
        },
        body: JSON.stringify(upstreamRequest(call, profile)),
      }),
    answer: (raw, call) =>
      call.kind === "chat"
        ? chatAnswer(raw)
        : embeddingsAnswer(raw, inputCount(call.body["input"])),
    failureInside: (raw) => (hasError(raw) ? streamFailure(raw, secret) : null),
    failure: (status, headers, bodyText) => httpFailure(status, headers, bodyText, secret),
    reader: () => sseReader(new ChunkReader(secret)),
  };
}

function hasError(raw: JsonObject): boolean {
  return raw["error"] !== undefined && raw["error"] !== null;
}
