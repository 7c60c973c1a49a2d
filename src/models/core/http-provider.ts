import { KIND_NAMES } from "../../shared/kinds.ts";
import type { Kind } from "../../shared/kinds.ts";
import { boundedText, discardBody } from "../../shared/http/bounded-body.ts";
import { logException } from "../../shared/log.ts";
import { estimateTokens } from "../../shared/tokens.ts";
import { retry } from "./frame-reader.ts";
import { streamOf } from "./whole-stream.ts";
import { JSON_BYTES_MAX, tooLarge } from "./response-size.ts";
import { GatheringBody } from "./gathering-body.ts";
import { parseObject, parsePlainObject } from "./json-value.ts";
import type { OutgoingBody } from "./outgoing-body.ts";
import { PacedReader } from "./paced-reader.ts";
import type {
  ProviderResponse,
  CallOf,
  ChatCall,
  EventStream,
  JsonObject,
  Provider,
  ProviderResult,
  ProviderCall,
  ProviderFailure,
  StreamEvent,
} from "./provider.ts";

/** Turns the bytes of one stream into events. Holds the state of that stream. */
export type StreamReader = {
  /** The events that these bytes complete; they may be cut anywhere. */
  push(bytes: Uint8Array): StreamEvent[];
  /** What the end of file completes. */
  flush(): StreamEvent[];
  /** After an `end` or an `error`: nothing that follows is read. */
  readonly ended: boolean;
};

/** How a wire asks and is answered for one kind of call. Nothing in it throws for an upstream's fault. */
export type Handler<Call extends ProviderCall> = {
  /**
   * Converts the request and sends it (`post`). A refusal is for what the provider cannot do. Throws
   * when the call's signal ends it; any other throw is a bug of ours, not a fault of the host's.
   */
  ask(call: Call): Promise<Response | ProviderFailure>;
  /** Converts the JSON of a 2xx; null when it is no answer of theirs. */
  answer(raw: JsonObject, call: Call, headers: Headers): ProviderResponse | ProviderFailure | null;
  /** Where one request may not hold all of a call: it is cut, and each part sent by `send`. */
  inParts?(call: Call, send: (part: Call) => Promise<ProviderResult>): Promise<ProviderResult>;
};

/** One provider's wire format: a handler for each kind of call that it does, and what they share. */
export type ProviderProtocol = { readonly [K in Kind]?: Handler<CallOf<K>> } & {
  readonly id: string;
  /** The media type of its streams. */
  readonly streamType: string;
  /** The failure that a 2xx with this JSON holds, or null. */
  failureInside(raw: JsonObject): ProviderFailure | null;
  /** Converts an answer outside 2xx. */
  failure(status: number, headers: Headers, bodyText: string, call: ProviderCall): ProviderFailure;
  /** A reader for the stream that answers this call. */
  reader(call: ChatCall): StreamReader;
};

const ERROR_BYTES_MAX = 64 * 1024;

/** The provider that speaks a wire format over HTTP: what all of them have in common. */
export function httpProvider(wire: ProviderProtocol): Provider {
  return { id: wire.id, kinds: kindsOf(wire), send: (call) => sendCall(wire, call) };
}

/** What can be asked over a wire. */
export function kindsOf(wire: ProviderProtocol): readonly Kind[] {
  return KIND_NAMES.filter((kind) => wire[kind] !== undefined);
}

/** A call over a wire. Throws for a bug of ours. */
export function sendCall(wire: ProviderProtocol, call: ProviderCall): Promise<ProviderResult> {
  return call.kind === "chat"
    ? handled(wire, wire.chat, call)
    : handled(wire, wire[call.kind], call);
}

function handled<Call extends ProviderCall>(
  wire: ProviderProtocol,
  handler: Handler<Call> | undefined,
  call: Call,
): Promise<ProviderResult> {
  if (handler === undefined) {
    return Promise.resolve(failed({ kind: "disabled", reason: `no_${call.kind}` }));
  }
  if (handler.inParts === undefined) return sendBy(wire, handler, call);
  return handler.inParts(call, (part) => sendBy(wire, handler, part));
}

async function sendBy<Call extends ProviderCall>(
  wire: ProviderProtocol,
  handler: Handler<Call>,
  call: Call,
): Promise<ProviderResult> {
  let asked: Response | ProviderFailure;
  try {
    asked = await handler.ask(call);
  } catch (error) {
    if (call.signal.aborted) return failed(connectionFailure(call));
    throw error;
  }
  if (!(asked instanceof Response)) return failed(asked);
  try {
    return await answered({ wire, handler, call }, asked);
  } catch {
    return failed({ kind: "retry", reason: "body" });
  }
}

/** What a wire posts: JSON, with the provider's own headers. */
type Post = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: OutgoingBody;
};

/** Sends a request as every provider gets it: no redirect is followed, the run's signal ends it. */
export async function post(
  call: ProviderCall,
  { url, headers, body }: Post,
): Promise<Response | ProviderFailure> {
  call.onDispatch?.();
  try {
    return await fetch(url, {
      method: "POST",
      redirect: "manual", // a redirect would carry the key and the prompt to another host
      headers: { ...headers, "content-type": "application/json", "user-agent": "turnpike" },
      signal: call.signal,
      // Node, where scripts run adapters, wants to be told that it may send before it is answered
      ...(typeof body === "string" ? { body } : { body: body.stream(), duplex: "half" }),
    });
  } catch {
    return connectionFailure(call);
  }
}

/** The failure of a request whose connection broke before an answer, or whose call has ended. */
export function connectionFailure({ signal }: ProviderCall): ProviderFailure {
  return signal.aborted
    ? { kind: "retry", reason: "aborted" }
    : { kind: "retry", reason: "connection", again: true };
}

/** The base URL without the slashes that operators leave at its end. */
export function trimmedUrl(url: string): string {
  return url.replace(/\/+$/, "");
}

/** A call under way: over which wire, by which of its handlers. */
type Under<Call extends ProviderCall> = {
  readonly wire: ProviderProtocol;
  readonly handler: Handler<Call>;
  readonly call: Call;
};

async function answered<Call extends ProviderCall>(
  under: Under<Call>,
  response: Response,
): Promise<ProviderResult> {
  const { wire, call } = under;
  if (!response.ok) {
    const text = (await boundedText(response, ERROR_BYTES_MAX)) ?? "";
    return failed(wire.failure(response.status, response.headers, text, call));
  }
  if (!call.stream) return jsonAnswer(under, response);
  const type = mediaType(response);
  if (type === "application/json") {
    const whole = await jsonAnswer(under, response);
    if (whole.kind !== "json") return whole;
    if (whole.native !== undefined) return failed(retry("no_stream"));
    return { kind: "stream", events: oneBatch(streamOf(whole)) };
  }
  if ((type !== wire.streamType && type !== "") || response.body === null) {
    discardBody(response);
    return failed(retry("content_type"));
  }
  return { kind: "stream", events: eventStream(response.body, wire.reader(call), call.paceMs) };
}

async function jsonAnswer<Call extends ProviderCall>(
  under: Under<Call>,
  response: Response,
): Promise<ProviderResult> {
  const text = await boundedText(response, JSON_BYTES_MAX);
  if (text === null) return failed(tooLarge(under.call));
  try {
    return converted(under, text, response.headers);
  } catch (error) {
    return failed({
      ...bugOf(error),
      spent: { usage: null, output: Math.ceil(estimateTokens(text)) },
    });
  }
}

function converted<Call extends ProviderCall>(
  { wire, handler, call }: Under<Call>,
  text: string,
  headers: Headers,
): ProviderResult {
  const raw = call.kind === "chat" ? parseObject(text) : parsePlainObject(text);
  if (raw === null) return failed({ kind: "retry", reason: "bad_json" });
  const inside = wire.failureInside(raw);
  if (inside !== null) return failed(inside);
  const answer = handler.answer(raw, call, headers);
  if (answer === null) return failed({ kind: "retry", reason: "bad_answer" });
  return "kind" in answer ? failed(answer) : { ...answer, kind: "json" };
}

/** A bug of ours in reading an answer. It says nothing of the route, and what was read is paid for. */
function bugOf(error: unknown): ProviderFailure {
  logException(error, {});
  return { ...BUG, spent: { usage: null, output: 0 } };
}

const BUG = { kind: "retry", reason: "exception", fault: "request" } as const;

/**
 * The events of a body: a batch for each network chunk until the model has said something, then one for
 * what comes within `paceMs`; null once the stream has ended.
 */
export function eventStream(
  body: ReadableStream<Uint8Array>,
  stream: StreamReader,
  paceMs = 0,
): EventStream {
  const reader = new PacedReader(new GatheringBody(body));
  let done = false;
  const cancel = (): void => {
    done = true;
    reader.cancel();
  };
  const read = (bytes: Uint8Array | null): readonly StreamEvent[] => {
    try {
      return bytes === null ? stream.flush() : stream.push(bytes);
    } catch (error) {
      cancel();
      return [{ kind: "error", failure: bugOf(error) }];
    }
  };
  const eventsOf = (bytes: Uint8Array | null): readonly StreamEvent[] | null => {
    if (bytes === null && done) return null; // we ended it ourselves: half an event says nothing
    if (bytes === null) done = true;
    const events = read(bytes);
    if (stream.ended && !done) {
      // What follows the end is nobody's. The end of file follows at once from a host that behaves:
      // read to it, the connection can serve again.
      done = true;
      reader.finish();
    }
    if (reader.paceMs !== paceMs && events.some(saysSomething)) reader.paceMs = paceMs;
    return done && events.length === 0 ? null : events;
  };
  // Not an async function: each of its awaits would be one more turn for every chunk.
  const next = (): Promise<readonly StreamEvent[] | null> =>
    done ? Promise.resolve(null) : reader.next().then(eventsOf);
  return { next, cancel };
}

/** Whether an event holds more than a role, or than the frame of an item. */
function saysSomething(event: StreamEvent): boolean {
  if (event.kind === "native") return event.said !== "";
  if (event.kind !== "chunk") return event.kind === "text";
  return event.chunk.choices.some(({ delta }) =>
    Object.entries(delta).some(([field, said]) => field !== "role" && said !== null && said !== ""),
  );
}

/** A stream whose events are all there. */
function oneBatch(events: readonly StreamEvent[]): EventStream {
  const batches = [events];
  return {
    next: () => Promise.resolve(batches.pop() ?? null),
    cancel: () => void batches.pop(),
  };
}

function failed(failure: ProviderFailure): ProviderResult {
  return { kind: "failure", failure };
}

function mediaType(response: Response): string {
  const value = response.headers.get("content-type") ?? "";
  return value.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}
