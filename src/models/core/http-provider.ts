import { CALL_KIND_NAMES } from "../../shared/kinds.ts";
import type { CallKind } from "../../shared/kinds.ts";
import { readBoundedText, discardBody } from "../../shared/http/bounded-body.ts";
import { logException } from "../../shared/log.ts";
import { estimateTokens } from "../../shared/tokens.ts";
import { FileReadPacer, FILE_READ_BYTES, BufferedBody, PacedBodyReader } from "./paced-reader.ts";
import { createRetryableFailure, STREAM_END_EVENT } from "./frame-reader.ts";
import type { StreamReader } from "./frame-reader.ts";
import { JSON_RESPONSE_BYTES_MAX, createResponseTooLargeFailure } from "./response-size.ts";
import { parseObject, parsePlainObject } from "./json-value.ts";
import type { OutgoingBody, MultipartForm } from "./outgoing-body.ts";
import type {
  ProviderResponse,
  ProviderCallOfKind,
  ChatCall,
  EventStream,
  JsonObject,
  Provider,
  ProviderResult,
  ProviderCall,
  ProviderFailure,
  StreamEvent,
} from "./provider.ts";
import type { Completion, Delta } from "./chunk.ts";

export type ProviderCallHandler<Call extends ProviderCall> = {
  /**
   * Sends the request. Returns a failure for an unsupported request. Throws if the signal fires, or
   * because of a bug.
   */
  send(call: Call): Promise<Response | ProviderFailure>;
  convertResponse(
    raw: JsonObject,
    call: Call,
    headers: Headers,
  ): ProviderResponse | ProviderFailure | null;
  /** Returns a reader that forwards a response while it arrives, even JSON. */
  pieces?(call: Call, headers: Headers): StreamReader;
  events?(whole: ProviderResponse): StreamEvent[];
  reader?(call: Call): StreamReader | undefined;
  sendInParts?(call: Call, send: (part: Call) => Promise<ProviderResult>): Promise<ProviderResult>;
};

export type ProviderHandlers = {
  readonly [K in CallKind]?: ProviderCallHandler<ProviderCallOfKind<K>>;
} & {
  readonly id: string;
  readonly streamType: string;
  failureInBody(raw: JsonObject): ProviderFailure | null;
  failure(status: number, headers: Headers, bodyText: string, call: ProviderCall): ProviderFailure;
  reader?(call: ChatCall): StreamReader;
};

const ERROR_BYTES_MAX = 64 * 1024;

export function createHttpProvider(wire: ProviderHandlers): Provider {
  return { id: wire.id, kinds: listSupportedKinds(wire), send: (call) => sendCall(wire, call) };
}

function listSupportedKinds(handlers: ProviderHandlers): readonly CallKind[] {
  return CALL_KIND_NAMES.filter((kind) => handlers[kind] !== undefined);
}

export function sendCall(wire: ProviderHandlers, call: ProviderCall): Promise<ProviderResult> {
  return call.kind === "chat"
    ? handleCall(wire, wire.chat, call)
    : handleCall(wire, wire[call.kind], call);
}

function handleCall<Call extends ProviderCall>(
  wire: ProviderHandlers,
  handler: ProviderCallHandler<Call> | undefined,
  call: Call,
): Promise<ProviderResult> {
  if (handler === undefined) {
    return Promise.resolve(toFailureResult({ kind: "disabled", reason: `no_${call.kind}` }));
  }
  if (handler.sendInParts === undefined) return sendWithHandler(wire, handler, call);
  return handler.sendInParts(call, (part) => sendWithHandler(wire, handler, part));
}

async function sendWithHandler<Call extends ProviderCall>(
  wire: ProviderHandlers,
  handler: ProviderCallHandler<Call>,
  call: Call,
): Promise<ProviderResult> {
  let response: Response | ProviderFailure;
  try {
    response = await handler.send(call);
  } catch (error) {
    if (call.signal.aborted) return toFailureResult(createConnectionFailure(call));
    throw error;
  }
  if (!(response instanceof Response)) return toFailureResult(response);
  try {
    return await readResponse({ wire, handler, call }, response);
  } catch {
    return toFailureResult({ kind: "retry", reason: "body" });
  }
}

type ProviderRequest = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: OutgoingBody | MultipartForm;
};

export async function sendPostRequest(
  call: ProviderCall,
  { url, headers, body }: ProviderRequest,
): Promise<Response | ProviderFailure> {
  call.onDispatch?.();
  const type = typeof body === "object" && "type" in body ? body.type : "application/json";
  try {
    return await fetch(url, {
      method: "POST",
      redirect: "manual", // A redirect would send the key and prompt to another host.
      headers: { ...headers, "content-type": type, "user-agent": "turnpike" },
      signal: call.signal,
      // Node requires `duplex` for streaming bodies.
      ...(typeof body === "string" ? { body } : { body: body.stream(), duplex: "half" }),
    });
  } catch {
    return createConnectionFailure(call);
  }
}

export function createConnectionFailure({ signal }: ProviderCall): ProviderFailure {
  return signal.aborted
    ? { kind: "retry", reason: "aborted" }
    : { kind: "retry", reason: "connection", again: true };
}

export function removeTrailingSlashes(url: string): string {
  return url.replace(/\/+$/, "");
}

type HandledCall<Call extends ProviderCall> = {
  readonly wire: ProviderHandlers;
  readonly handler: ProviderCallHandler<Call>;
  readonly call: Call;
};

async function readResponse<Call extends ProviderCall>(
  handledCall: HandledCall<Call>,
  response: Response,
): Promise<ProviderResult> {
  const { wire, handler, call } = handledCall;
  if (!response.ok) {
    const text = (await readBoundedText(response, ERROR_BYTES_MAX)) ?? "";
    return toFailureResult(wire.failure(response.status, response.headers, text, call));
  }
  if (handler.pieces !== undefined && response.body !== null) {
    return {
      kind: "stream",
      events: fileStream(response.body, handler.pieces(call, response.headers)),
    };
  }
  return call.stream ? readStream(handledCall, response) : readJsonResponse(handledCall, response);
}

async function readStream<Call extends ProviderCall>(
  handledCall: HandledCall<Call>,
  response: Response,
): Promise<ProviderResult> {
  const { wire, handler, call } = handledCall;
  const type = mediaType(response);
  if (type === "application/json") {
    return streamCompleteResponse(handler, await readJsonResponse(handledCall, response));
  }
  const reader = handler.reader?.(call) ?? (call.kind === "chat" ? wire.reader?.(call) : undefined);
  const isStream = type === wire.streamType || type === "";
  if (!isStream || response.body === null || reader === undefined) {
    discardBody(response);
    return toFailureResult(createRetryableFailure("content_type"));
  }
  return { kind: "stream", events: createBatchedEventStream(response.body, reader, call.paceMs) };
}

/** Converts a complete response to a stream, because some hosts ignore `stream`. */
function streamCompleteResponse(
  { events }: Pick<ProviderCallHandler<never>, "events">,
  whole: ProviderResult,
): ProviderResult {
  if (whole.kind !== "json") return whole;
  if (whole.native !== undefined) return toFailureResult(createRetryableFailure("no_stream"));
  return {
    kind: "stream",
    events: createSingleBatchStream(events === undefined ? eventsOfResponse(whole) : events(whole)),
  };
}

async function readJsonResponse<Call extends ProviderCall>(
  handledCall: HandledCall<Call>,
  response: Response,
): Promise<ProviderResult> {
  const text = await readBoundedText(response, JSON_RESPONSE_BYTES_MAX);
  if (text === null) return toFailureResult(createResponseTooLargeFailure(handledCall.call));
  try {
    return convertResponse(handledCall, text, response.headers);
  } catch (error) {
    return toFailureResult({
      ...bugFailure(error),
      spent: { usage: null, output: Math.ceil(estimateTokens(text)) },
    });
  }
}

function convertResponse<Call extends ProviderCall>(
  { wire, handler, call }: HandledCall<Call>,
  text: string,
  headers: Headers,
): ProviderResult {
  const raw = call.kind === "chat" ? parseObject(text) : parsePlainObject(text);
  if (raw === null) return toFailureResult({ kind: "retry", reason: "bad_json" });
  const failureInBody = wire.failureInBody(raw);
  if (failureInBody !== null) return toFailureResult(failureInBody);
  const answer = handler.convertResponse(raw, call, headers);
  if (answer === null) return toFailureResult({ kind: "retry", reason: "bad_answer" });
  return "kind" in answer ? toFailureResult(answer) : { ...answer, kind: "json" };
}

/**
 * Returns the failure for our own bug. The bug doesn't count against the route. The output so far
 * is charged.
 */
function bugFailure(error: unknown): ProviderFailure {
  logException(error, {});
  return { ...BUG_FAILURE, spent: { usage: null, output: 0 } };
}

const BUG_FAILURE = { kind: "retry", reason: "exception", fault: "request" } as const;

/**
 * Returns the events of a body in batches. Until the first output, each network chunk is a batch.
 * Later, there is at most one batch per `paceMs`.
 */
export function createBatchedEventStream(
  body: ReadableStream<Uint8Array>,
  stream: StreamReader,
  paceMs = 0,
  fileBytes: number | null = null,
): EventStream {
  const reader = new PacedBodyReader(new BufferedBody(body, fileBytes));
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
      return [{ kind: "error", failure: bugFailure(error) }];
    }
  };
  const eventsOf = (bytes: Uint8Array | null): readonly StreamEvent[] | null => {
    // The gateway ended the stream, so incomplete events are discarded.
    if (bytes === null && done) return null;
    if (bytes === null) done = true;
    const events = read(bytes);
    if (stream.ended && !done) {
      // Discards data after the end. Reading the whole body frees the connection.
      done = true;
      reader.finish();
    }
    if (reader.paceMs !== paceMs && events.some(hasOutput)) reader.paceMs = paceMs;
    return done && events.length === 0 ? null : events;
  };
  // Not async, because each await would add a microtask per chunk.
  const next = (): Promise<readonly StreamEvent[] | null> =>
    done ? Promise.resolve(null) : reader.next().then(eventsOf);
  return { next, cancel };
}

function hasOutput(event: StreamEvent): boolean {
  if (event.kind === "native") return event.text !== "";
  if (event.kind !== "chunk") return event.kind === "text";
  return event.chunk.choices.some(({ delta }) =>
    Object.entries(delta).some(
      ([field, reported]) => field !== "role" && reported !== null && reported !== "",
    ),
  );
}

const FILE_PACER = new FileReadPacer();

/**
 * Returns the events of audio or images. Limits the reading speed, because reading delays the
 * isolate's other requests.
 */
function fileStream(body: ReadableStream<Uint8Array>, stream: StreamReader): EventStream {
  let lastBytes = 0;
  const countingReader: StreamReader = {
    push: (bytes) => {
      lastBytes = bytes.length;
      return stream.push(bytes);
    },
    flush: () => stream.flush(),
    get ended() {
      return stream.ended;
    },
  };
  const events = createBatchedEventStream(body, countingReader, 0, FILE_READ_BYTES);
  const next = () => FILE_PACER.waitAfter(lastBytes).then(() => events.next());
  return { next, cancel: () => events.cancel() };
}

export function createSingleBatchStream(events: readonly StreamEvent[]): EventStream {
  const batches = [events];
  return { next: () => Promise.resolve(batches.pop() ?? null), cancel: () => void batches.pop() };
}

export function toFailureResult(failure: ProviderFailure): ProviderResult {
  return { kind: "failure", failure };
}

function mediaType(response: Response): string {
  const value = response.headers.get("content-type") ?? "";
  return value.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

function eventsOfResponse({ body, usage }: ProviderResponse): StreamEvent[] {
  const { choices, ...head } = body as Completion;
  const events = choices.flatMap(({ index, message, logprobs = null, finish_reason: reason }) => {
    const deltas: readonly Delta[] = [...deltasOf(message), {}];
    return deltas.map((delta, at): StreamEvent => {
      const isLast = at === deltas.length - 1;
      const value = { index, delta, logprobs: at === 0 ? logprobs : null };
      const choice = { ...value, finish_reason: isLast ? reason : null };
      return { kind: "chunk", chunk: { ...head, choices: [choice] } };
    });
  });
  if (usage !== null) events.push({ kind: "usage", usage });
  return [...events, STREAM_END_EVENT];
}

function deltasOf({ tool_calls: calls = [], refusal, ...message }: Delta): Delta[] {
  const first = refusal === null || refusal === undefined ? message : { ...message, refusal };
  return [first, ...calls.map((call, index) => ({ tool_calls: [{ index, ...call }] }))];
}
