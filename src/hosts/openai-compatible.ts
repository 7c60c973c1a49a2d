import { inBatches } from "../core/embedding-batches.ts";
import { httpProvider, post, sendOver, trimmedUrl } from "../core/http-provider.ts";
import type { Wire } from "../core/http-provider.ts";
import type { Provider, ProviderAnswer, ProviderCall } from "../core/provider.ts";
import { sseReader } from "../core/sse-reader.ts";
import { responsesWire } from "./responses-wire.ts";
import { RESPONSES_ONLY } from "../wires/responses/host-rules.ts";
import { httpFailure, streamFailure } from "../core/upstream-failure.ts";
import { chatAnswer, embeddingsAnswer, inputCount } from "../wires/chat/answer.ts";
import { ChunkReader } from "../wires/chat/chunks.ts";
import { hasError } from "../core/chat-message.ts";
import type { Profile } from "../wires/chat/profile.ts";
import { upstreamRequest } from "../wires/chat/request.ts";

/** One host that speaks OpenAI's API. */
export type OpenAiHost = {
  readonly id: string;
  /** Ends in the version, e.g. `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly profile: Profile;
  /** Without one no key is sent (Ollama, vLLM on a private network). */
  readonly secret?: string;
};

/** The adapter for every host that speaks OpenAI's chat completions and embeddings. */
export function openAiCompatible(host: OpenAiHost): Provider {
  const wire = wireOf(host);
  const { textsMax, speaksResponses } = host.profile;
  if (speaksResponses === true) return withResponses(host, wire);
  const { takesTokens = false } = host.profile;
  if (textsMax === undefined) return { ...httpProvider(wire), takesTokens };
  return {
    id: host.id,
    send: (call) =>
      call.kind === "chat" ? sendOver(wire, call) : embedInBatches(wire, call, textsMax),
  };
}

/** A host with two wires: Responses for those who speak it, and for models that need it. */
function withResponses({ id, baseUrl, profile, secret }: OpenAiHost, chat: Wire): Provider {
  const url = `${trimmedUrl(baseUrl)}/responses`;
  const headers = keyHeaders(profile, secret);
  const responses = responsesWire({ id, url, headers, ...(secret !== undefined && { secret }) });
  return {
    id,
    takesTokens: true, // it is OpenAI itself
    readsFiles: true,
    speaks: (wire) => wire === "responses",
    send: (call) => sendOver(needsResponses(call) ? responses : chat, call),
  };
}

function needsResponses({ kind, native, upstreamId }: ProviderCall): boolean {
  return kind === "chat" && (native !== undefined || RESPONSES_ONLY.test(upstreamId));
}

function embedInBatches(wire: Wire, call: ProviderCall, size: number): Promise<ProviderAnswer> {
  return inBatches(call, size, (part, input) =>
    sendOver(wire, { ...part, body: { ...part.body, input } }),
  );
}

function wireOf({ id, baseUrl, profile, secret }: OpenAiHost): Wire {
  const base = trimmedUrl(baseUrl);
  const key = keyHeaders(profile, secret);
  const streamHeaders = { accept: "text/event-stream", ...key };
  const jsonHeaders = { accept: "application/json", ...key };
  return {
    id,
    streamType: "text/event-stream",
    ask(call) {
      const request = upstreamRequest(call, profile);
      if (!("body" in request)) return Promise.resolve(request);
      return post(call, {
        url: base + (call.kind === "chat" ? profile.chatPath : profile.embeddingsPath),
        headers: call.stream ? streamHeaders : jsonHeaders,
        body: JSON.stringify(request.body),
      });
    },
    answer: (raw, call) =>
      call.kind === "chat"
        ? chatAnswer(raw, profile.usage)
        : embeddingsAnswer(raw, inputCount(call.body["input"])),
    failureInside: (raw) => (hasError(raw) ? streamFailure(raw, secret) : null),
    failure: (status, headers, bodyText) => httpFailure(status, headers, bodyText, secret),
    reader: ({ body }) => sseReader(new ChunkReader(secret, profile.usage, Number(body["n"] ?? 1))),
  };
}

function keyHeaders({ keyHeader }: Profile, secret: string | undefined): Record<string, string> {
  if (secret === undefined) return {};
  return keyHeader === undefined ? { authorization: `Bearer ${secret}` } : { [keyHeader]: secret };
}
