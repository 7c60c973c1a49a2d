import { discardBody } from "../http/bounded-body.ts";
import { inBatches } from "../core/embedding-batches.ts";
import { httpProvider, post } from "../core/http-provider.ts";
import type { Wire } from "../core/http-provider.ts";
import type { OutgoingBody } from "../core/outgoing-body.ts";
import { isFailure } from "../core/provider.ts";
import type { Provider, ProviderCall, ProviderFailure } from "../core/provider.ts";
import { sseReader } from "../core/sse-reader.ts";
import { chatAnswer } from "../wires/gemini/answer.ts";
import { ChunkReader } from "../wires/gemini/chunks.ts";
import type { EmbeddingMethod } from "../wires/gemini/embeddings.ts";
import { failureInside, googleFailure } from "../wires/gemini/failure.ts";
import { chatRequest } from "../wires/gemini/request.ts";

type Credential = Readonly<Record<string, string>>;

/** One of Google's two services: the Gemini API or Vertex. */
export type Service = {
  readonly id: string;
  /** The address that models stand under, without a slash at its end. */
  readonly models: string;
  readonly embeddings: EmbeddingMethod;
  /** The header that lets us in, or why there is none. */
  credential(): Promise<Credential | ProviderFailure>;
  /** After a 401: true when another credential may do better. */
  renew?(refused: Credential): boolean;
  /** What an upstream's text may quote and nobody must see. */
  secrets(): readonly string[];
};

/** The adapter for Google's generateContent and its embeddings. */
export function google(service: Service): Provider {
  return { ...httpProvider(wireOf(service)), readsFiles: true };
}

function wireOf(service: Service): Wire {
  const { embeddings } = service;
  return {
    id: service.id,
    streamType: "text/event-stream",
    chat: {
      async ask(call) {
        const body = await chatRequest(call);
        const method = call.stream ? "streamGenerateContent?alt=sse" : "generateContent";
        return isFailure(body) ? body : asked(service, call, { method, body });
      },
      answer: chatAnswer,
    },
    embeddings: {
      inParts: (call, send) => inBatches(call, embeddings.size(call.upstreamId), send),
      ask: (call) =>
        asked(service, call, {
          method: embeddings.method,
          body: JSON.stringify(embeddings.request(call)),
        }),
      answer: embeddings.answer,
    },
    failureInside: (raw) => failureInside(raw, service.secrets()),
    failure: (status, headers, bodyText) =>
      googleFailure(status, headers, bodyText, service.secrets()),
    reader: ({ body }) => sseReader(new ChunkReader(() => service.secrets(), body.n)),
  };
}

/** Sends a request; once more where the credential was refused and there is another. */
async function asked(
  service: Service,
  call: ProviderCall,
  { method, body }: { readonly method: string; readonly body: OutgoingBody },
): Promise<Response | ProviderFailure> {
  const url = `${service.models}/${encodeURIComponent(call.upstreamId)}:${method}`;
  const first = await service.credential();
  if (isFailure(first)) return first;
  const response = await post(call, { url, headers: first, body });
  if (isFailure(response)) return response;
  if (response.status !== 401 || service.renew?.(first) !== true) return response;
  discardBody(response);
  const second = await service.credential();
  return isFailure(second) ? second : post(call, { url, headers: second, body });
}
