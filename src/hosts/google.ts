import { discardBody } from "../http/bounded-body.ts";
import { inBatches } from "../core/embedding-batches.ts";
import { post, sendOver } from "../core/http-provider.ts";
import type { Wire } from "../core/http-provider.ts";
import type { OutgoingBody } from "../core/outgoing-body.ts";
import type { JsonObject, Provider, ProviderCall, ProviderFailure } from "../core/provider.ts";
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
  const wire = wireOf(service);
  return {
    id: service.id,
    readsFiles: true,
    send: (call) =>
      call.kind === "chat"
        ? sendOver(wire, call)
        : inBatches(call, service.embeddings.size(call.upstreamId), (part, texts) =>
            sendOver(wire, { ...part, body: { ...part.body, input: texts } }),
          ),
  };
}

function wireOf(service: Service): Wire {
  return {
    id: service.id,
    streamType: "text/event-stream",
    async ask(call) {
      if (call.kind === "chat") {
        const body = await chatRequest(call);
        return isRefused(body) ? body : asked(service, call, body);
      }
      const body = service.embeddings.request(call);
      return isFailure(body) ? body : asked(service, call, JSON.stringify(body));
    },
    answer: (raw, call) =>
      call.kind === "chat" ? chatAnswer(raw) : service.embeddings.answer(raw, call),
    failureInside: (raw) => failureInside(raw, service.secrets()),
    failure: (status, headers, bodyText) =>
      googleFailure(status, headers, bodyText, service.secrets()),
    reader: ({ body }) =>
      sseReader(new ChunkReader(() => service.secrets(), Number(body["n"] ?? 1))),
  };
}

/** Sends a request; once more where the credential was refused and there is another. */
async function asked(
  service: Service,
  call: ProviderCall,
  body: OutgoingBody,
): Promise<Response | ProviderFailure> {
  const url = `${service.models}/${encodeURIComponent(call.upstreamId)}:${methodOf(service, call)}`;
  const first = await service.credential();
  if (isFailure(first)) return first;
  const response = await post(call, { url, headers: first, body });
  if (isFailure(response)) return response;
  if (response.status !== 401 || service.renew?.(first) !== true) return response;
  discardBody(response);
  const second = await service.credential();
  return isFailure(second) ? second : post(call, { url, headers: second, body });
}

function methodOf(service: Service, { kind, stream }: ProviderCall): string {
  if (kind === "embeddings") return service.embeddings.method;
  return stream ? "streamGenerateContent?alt=sse" : "generateContent";
}

function isRefused(body: OutgoingBody | ProviderFailure): body is ProviderFailure {
  return typeof body === "object" && "reason" in body;
}

function isFailure(
  value: JsonObject | Credential | Response | ProviderFailure,
): value is ProviderFailure {
  return "reason" in value;
}
