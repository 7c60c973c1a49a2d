import { invalid, refuse, success } from "../failure.ts";
import type { Refusal, Result } from "../failure.ts";
import { afterTimeout } from "../timers.ts";
import type { After } from "../timers.ts";
import { joinBytes } from "./bounded-body.ts";
import { parseJsonText } from "./json-text.ts";
import type { JsonObject } from "./json-text.ts";

/** The largest body of a request that is paid for: 20 MiB. */
export const BODY_BYTES_MAX = 20 * 1024 * 1024;
/** A body that declares at most so much is read at once: 4 MiB. */
export const WHOLE_BYTES_MAX = 4 * 1024 * 1024;
/** Of one whose tokens are counted, for nothing: 4 MiB. */
export const COUNT_BYTES_MAX = 4 * 1024 * 1024;
/** Of every other, which anybody with a key may send without paying: 1 MiB. */
export const MANAGEMENT_BYTES_MAX = 1024 * 1024;

/** `timeoutMs` bounds the whole body, from the call to its last byte. */
export type BodyLimits = {
  readonly bytesMax: number;
  readonly timeoutMs: number;
  readonly after?: After;
  /** Told of each piece of a body that is not read at once; false ends it with 503. */
  readonly hasRoom?: (bytes: number) => boolean;
};

/** A longer type is none that a client sends, and the pattern's time grows with its square. */
const TYPE_CHARACTERS_MAX = 100;
const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*(?:utf-?8|"utf-?8")\s*)?;?\s*$/i;
// Browsers send text/plain and forms across origins without asking; only JSON is a body here.
const NOT_JSON = "Send the request body as 'Content-Type: application/json' (UTF-8).";
// The client broke off or sent broken framing; nobody may be left to read this.
const UNREADABLE = "The request body could not be read.";
const COMPRESSED = "Send the request body without 'Content-Encoding'.";

/** A JSON body, and the bytes that it was read from. */
export type JsonBody = { readonly json: JsonObject; readonly bytes: Uint8Array };

/**
 * The request's body as one JSON object, or 400, 408, 413, 415. Reads at most `bytesMax`, whatever
 * `content-length` claims, and gives up after `timeoutMs`. What counts as JSON: `parseJsonText`.
 * Never throws for anything a client can send.
 */
export async function readJson(request: Request, limits: BodyLimits): Promise<Result<JsonObject>> {
  const body = await readJsonBody(request, limits);
  return body.ok ? success(body.value.json) : body;
}

/** `readJson` for those who need the bytes too. */
export async function readJsonBody(
  request: Request,
  limits: BodyLimits,
): Promise<Result<JsonBody>> {
  const refusal = refusedHeaders(request.headers);
  if (refusal !== null) return refusal;
  const bytes = await readBytes(request, limits);
  if (!bytes.ok) return bytes;
  const json = parseJsonBytes(bytes.value);
  return json.ok ? success({ json: json.value, bytes: bytes.value }) : json;
}

/** The bytes of a body as one JSON object, or a 400: UTF-8 and `parseJsonText`. */
export function parseJsonBytes(bytes: Uint8Array): Result<JsonObject> {
  const text = decode(bytes);
  return text.ok ? parseJsonText(text.value) : text;
}

function refusedHeaders(headers: Headers): Refusal | null {
  const type = headers.get("content-type") ?? "";
  const isJson = type.length <= TYPE_CHARACTERS_MAX && JSON_TYPE.test(type);
  if (type !== "application/json" && !isJson) {
    return refuse({ kind: "unsupported_media_type", message: NOT_JSON });
  }
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity") {
    return refuse({ kind: "unsupported_media_type", message: COMPRESSED });
  }
  return null;
}

type Bytes = Result<Uint8Array>;

/** The raw bytes of a body, bounded in size and time: 400, 408, 413. */
export async function readBytes(request: Request, limits: BodyLimits): Promise<Bytes> {
  const declared = request.headers.get("content-length") ?? "";
  if (Number(declared) > limits.bytesMax) return tooLarge(limits.bytesMax);
  // HTTP itself ends a body at its declared length, which was found small enough: one native read,
  // at half the cost of 4 KiB chunks. Without a length, and of a large body, the chunks are counted as
  // they come: who declares 20 MiB and sends nothing takes no room.
  const isDeclared = /^\d+$/.test(declared) && Number(declared) <= WHOLE_BYTES_MAX;
  return isDeclared ? readWhole(request, limits) : readChunks(request, limits);
}

/** One native read, without a race: it settles with whichever comes first. */
function readWhole(request: Request, limits: BodyLimits): Promise<Bytes> {
  const { bytesMax, timeoutMs, after = afterTimeout } = limits;
  return new Promise((resolve) => {
    const cancel = after(timeoutMs, () => resolve(refuse({ kind: "request_timeout" })));
    const end = (bytes: Bytes): void => {
      cancel();
      resolve(bytes);
    };
    request.arrayBuffer().then(
      (read) =>
        end(read.byteLength > bytesMax ? tooLarge(bytesMax) : success(new Uint8Array(read))),
      () => end(invalid(UNREADABLE)),
    );
  });
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;
type Deadline = Promise<"late">;

async function readChunks(request: Request, limits: BodyLimits): Promise<Bytes> {
  if (request.body === null) return success(new Uint8Array());
  const deadline = Promise.withResolvers<"late">();
  const cancel = (limits.after ?? afterTimeout)(limits.timeoutMs, () => deadline.resolve("late"));
  try {
    return await readPieces(request.body.getReader(), limits, deadline.promise);
  } catch {
    return invalid(UNREADABLE);
  } finally {
    cancel();
  }
}

async function readPieces(reader: Reader, limits: BodyLimits, deadline: Deadline): Promise<Bytes> {
  const { bytesMax, hasRoom } = limits;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- a stream is read in order
    const read = await Promise.race([reader.read(), deadline]);
    if (read === "late") return giveUp(reader, refuse({ kind: "request_timeout" }));
    if (read.done) return success(joinBytes(chunks, length));
    length += read.value.byteLength;
    if (length > bytesMax) return giveUp(reader, tooLarge(bytesMax));
    if (hasRoom?.(read.value.byteLength) === false) {
      return giveUp(reader, refuse({ kind: "overloaded" }));
    }
    chunks.push(read.value);
  }
}

/** Stops the upload without waiting for it: the refusal is the answer, whatever canceling brings. */
function giveUp(reader: Reader, refusal: Refusal): Refusal {
  reader.cancel().catch(() => undefined);
  return refusal;
}

/** ignoreBOM keeps the mark in the text; RFC 8259 section 8.1 lets a reader refuse it. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array): Result<string> {
  if (bytes.byteLength === 0) return invalid("The request body is empty.");
  try {
    const text = utf8.decode(bytes);
    if (text.charCodeAt(0) === 0xfeff) {
      return invalid("The request body must not begin with a byte order mark.");
    }
    return success(text);
  } catch {
    return invalid("The request body is not valid UTF-8.");
  }
}

function tooLarge(bytesMax: number): Refusal {
  return refuse({ kind: "body_too_large", bytesMax });
}
