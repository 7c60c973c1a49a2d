import { SseDecoder } from "../http/server-sent-events.ts";
import { boundedText, discardBody } from "../http/bounded-body.ts";
import { chatAnswer, embeddingsAnswer, inputCount } from "./openai-answer.ts";
import { ChunkReader } from "./openai-chunks.ts";
import { parseObject } from "./json-value.ts";
import { upstreamRequest } from "./openai-request.ts";
import type { Profile } from "./profile.ts";
import type {
  EventStream,
  JsonObject,
  Provider,
  ProviderAnswer,
  ProviderCall,
  ProviderFailure,
  StreamEvent,
} from "./provider.ts";
import { httpFailure, streamFailure } from "./upstream-failure.ts";

/** One host that speaks OpenAI's API. */
export type OpenAiHost = {
  readonly id: string;
  /** Ends in the version, e.g. `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly profile: Profile;
  /** Without one no Authorization header is sent (Ollama, vLLM on a private network). */
  readonly secret?: string;
};

export const JSON_BYTES_MAX = 20 * 1024 * 1024;
const ERROR_BYTES_MAX = 64 * 1024;

/** The adapter for every host that speaks OpenAI's chat completions and embeddings. */
export function openAiCompatible(host: OpenAiHost): Provider {
  return {
    id: host.id,
    async send(call) {
      const started = await request(host, call);
      if (started instanceof Response) return answered(started, host, call);
      return failed(started);
    },
  };
}

async function request(host: OpenAiHost, call: ProviderCall): Promise<Response | ProviderFailure> {
  const { profile } = host;
  const path = call.kind === "chat" ? profile.chatPath : profile.embeddingsPath;
  try {
    return await fetch(host.baseUrl.replace(/\/+$/, "") + path, {
      method: "POST",
      redirect: "manual", // a redirect would carry the key and the prompt to another host
      headers: {
        "content-type": "application/json",
        accept: call.stream ? "text/event-stream" : "application/json",
        "user-agent": "turnpike",
        ...(host.secret !== undefined && { authorization: `Bearer ${host.secret}` }),
      },
      body: JSON.stringify(upstreamRequest(call, profile)),
      signal: call.signal,
    });
  } catch {
    return call.signal.aborted
      ? { kind: "retry", reason: "aborted" }
      : { kind: "retry", reason: "connection", again: true };
  }
}

async function answered(
  response: Response,
  host: OpenAiHost,
  call: ProviderCall,
): Promise<ProviderAnswer> {
  try {
    if (!response.ok) return failed(await refusedBy(response, host));
    const isStream = ["text/event-stream", ""].includes(mediaType(response));
    if (!call.stream) return await jsonAnswer(response, call, host.secret);
    if (!isStream || response.body === null) return failed(await inSuccess(response, host.secret));
    return { kind: "stream", events: eventStream(response.body, host.secret) };
  } catch {
    return failed({ kind: "retry", reason: "body" });
  }
}

async function refusedBy(response: Response, host: OpenAiHost): Promise<ProviderFailure> {
  const body = (await boundedText(response, ERROR_BYTES_MAX)) ?? "";
  return httpFailure(response.status, response.headers, body, host.secret);
}

/** A 200 of the wrong kind: an error as JSON where a stream was asked for, or something else. */
async function inSuccess(response: Response, secret?: string): Promise<ProviderFailure> {
  if (mediaType(response) !== "application/json") {
    discardBody(response);
    return { kind: "retry", reason: "content_type" };
  }
  const raw = parseObject(await boundedText(response, ERROR_BYTES_MAX));
  return raw !== null && hasError(raw)
    ? streamFailure(raw, secret)
    : { kind: "retry", reason: "no_stream" };
}

async function jsonAnswer(
  response: Response,
  call: ProviderCall,
  secret?: string,
): Promise<ProviderAnswer> {
  const text = await boundedText(response, JSON_BYTES_MAX);
  if (text === null) return failed({ kind: "retry", reason: "body_too_large" });
  const raw = parseObject(text);
  if (raw === null) return failed({ kind: "retry", reason: "bad_json" });
  if (hasError(raw)) return failed(streamFailure(raw, secret));
  const answer =
    call.kind === "chat" ? chatAnswer(raw) : embeddingsAnswer(raw, inputCount(call.body["input"]));
  return answer === null
    ? failed({ kind: "retry", reason: "bad_answer" })
    : { kind: "json", ...answer };
}

type Read = { readonly done: true } | { readonly done: false; readonly value: Uint8Array };

/** The events of a body, one batch for each network chunk; null once the stream has ended. */
function eventStream(body: ReadableStream<Uint8Array>, secret?: string): EventStream {
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  const decoder = new SseDecoder();
  const chunks = new ChunkReader(secret);
  let done = false;
  const cancel = (): void => {
    done = true;
    reader.cancel().catch(() => undefined); // already broken: nothing is left to end
  };
  const eventsOf = (read: Read): readonly StreamEvent[] | null => {
    done = read.done;
    const messages = read.done ? decoder.flushEvents() : decoder.events(read.value);
    const events: StreamEvent[] = [];
    for (const { name, data } of messages) events.push(...chunks.read(data, name));
    if (decoder.overflowed && !chunks.ended) events.push(...chunks.fail("event_too_large"));
    if (chunks.ended && !done) {
      // What follows the end is nobody's. The end of file follows at once from a host that behaves:
      // read to it, the connection can serve again.
      done = true;
      reader.read().catch(() => undefined);
    }
    return done && events.length === 0 ? null : events;
  };
  // Not an async function: each of its awaits would be one more turn for every chunk.
  const next = (): Promise<readonly StreamEvent[] | null> =>
    done ? Promise.resolve(null) : reader.read().then(eventsOf);
  return { next, cancel };
}

function failed(failure: ProviderFailure): ProviderAnswer {
  return { kind: "failure", failure };
}

function mediaType(response: Response): string {
  const value = response.headers.get("content-type") ?? "";
  return value.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

function hasError(raw: JsonObject): boolean {
  return raw["error"] !== undefined && raw["error"] !== null;
}
