import { discardBody } from "../../http/bounded-body.ts";
import { inBatches } from "../embedding-batches.ts";
import { post, sendOver } from "../http-provider.ts";
import type { Wire } from "../http-provider.ts";
import type { OutgoingBody } from "../outgoing-body.ts";
import type { JsonObject, Provider, ProviderCall, ProviderFailure } from "../provider.ts";
import { sseReader } from "../sse-reader.ts";
import { chatAnswer } from "./answer.ts";
import { ChunkReader } from "./chunks.ts";
import type { EmbeddingDoor } from "./embeddings.ts";
import { failureInside, googleFailure } from "./failure.ts";
import { chatRequest } from "./request.ts";

type Credential = Readonly<Record<string, string>>;

/** One of Google's two ways in: the Gemini API or Vertex. */
export type Door = {
  readonly id: string;
  /** The address that models stand under, without a slash at its end. */
  readonly models: string;
  readonly embeddings: EmbeddingDoor;
  /** The header that lets us in, or why there is none. */
  credential(): Promise<Credential | ProviderFailure>;
  /** After a 401: true when another credential may do better. */
  renew?(refused: Credential): boolean;
  /** What an upstream's text may quote and nobody must see. */
  secrets(): readonly string[];
};

/** The adapter for Google's generateContent and its embeddings. */
export function google(door: Door): Provider {
  const wire = wireOf(door);
  return {
    id: door.id,
    send: (call) =>
      call.kind === "chat"
        ? sendOver(wire, call)
        : inBatches(call, door.embeddings.size(call.upstreamId), (part, texts) =>
            sendOver(wire, { ...part, body: { ...part.body, input: texts } }),
          ),
  };
}

function wireOf(door: Door): Wire {
  return {
    id: door.id,
    streamType: "text/event-stream",
    async ask(call) {
      if (call.kind === "chat") {
        const body = await chatRequest(call);
        return isRefused(body) ? body : asked(door, call, body);
      }
      const body = door.embeddings.request(call);
      return isFailure(body) ? body : asked(door, call, JSON.stringify(body));
    },
    answer: (raw, call) =>
      call.kind === "chat" ? chatAnswer(raw) : door.embeddings.answer(raw, call),
    failureInside: (raw) => failureInside(raw, door.secrets()),
    failure: (status, headers, bodyText) =>
      googleFailure(status, headers, bodyText, door.secrets()),
    reader: ({ body }) => sseReader(new ChunkReader(() => door.secrets(), Number(body["n"] ?? 1))),
  };
}

/** Sends a request; once more where the credential was refused and there is another. */
async function asked(
  door: Door,
  call: ProviderCall,
  body: OutgoingBody,
): Promise<Response | ProviderFailure> {
  const url = `${door.models}/${encodeURIComponent(call.upstreamId)}:${methodOf(door, call)}`;
  const first = await door.credential();
  if (isFailure(first)) return first;
  const response = await post(call, { url, headers: first, body });
  if (isFailure(response)) return response;
  if (response.status !== 401 || door.renew?.(first) !== true) return response;
  discardBody(response);
  const second = await door.credential();
  return isFailure(second) ? second : post(call, { url, headers: second, body });
}

function methodOf(door: Door, { kind, stream }: ProviderCall): string {
  if (kind === "embeddings") return door.embeddings.method;
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
