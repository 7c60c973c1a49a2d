import { invalid, refuse, success } from "../failure.ts";
import type { Refusal, Result } from "../failure.ts";
import { afterTimeout } from "../timers.ts";
import type { TimerFunction } from "../timers.ts";
import { joinBytes } from "./bounded-body.ts";
import { parseFormBoundary, formToObject, parseForm } from "./form.ts";
import type { FormField } from "./form.ts";
import { parseJsonText } from "./json-text.ts";
import type { JsonObject } from "./json-text.ts";

/** Maximum bytes of a paid request's body. */
export const BODY_BYTES_MAX = 20 * 1024 * 1024;
/** Maximum declared length (bytes) of a body read in one call. */
export const SINGLE_READ_BYTES_MAX = 4 * 1024 * 1024;
/** Maximum body bytes of a request that counts tokens, which is free. */
export const TOKEN_COUNT_BYTES_MAX = 4 * 1024 * 1024;
/** Maximum body bytes of unpaid requests that have no other limit. */
export const MANAGEMENT_BYTES_MAX = 1024 * 1024;

export type BodyLimits = {
  readonly bytesMax: number;
  readonly timeoutMs: number;
  readonly after?: TimerFunction;
  /**
   * Receives the size of each piece of a large body. If it returns false, the read fails with 503.
   */
  readonly hasRoom?: (bytes: number) => boolean;
  readonly acceptsForms?: boolean;
};

/** Maximum length of a content type, because matching takes quadratic time. */
const TYPE_CHARACTERS_MAX = 100;
const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*(?:utf-?8|"utf-?8")\s*)?;?\s*$/i;
// Browsers send text/plain and forms cross-origin without a preflight, so only JSON is accepted.
const NOT_JSON = "Send the request body as 'Content-Type: application/json' (UTF-8).";
const UNREADABLE = "The request body could not be read.";
const COMPRESSED = "Send the request body without 'Content-Encoding'.";

export type JsonBody = {
  readonly json: JsonObject;
  readonly bytes: Uint8Array;
  readonly form?: readonly FormField[];
};

/** Reads a body of at most `bytesMax` as a JSON object. Fails with 400, 408, 413 or 415. */
export async function readJson(request: Request, limits: BodyLimits): Promise<Result<JsonObject>> {
  const body = await readJsonBody(request, limits);
  return body.ok ? success(body.value.json) : body;
}

export async function readJsonBody(
  request: Request,
  limits: BodyLimits,
): Promise<Result<JsonBody>> {
  const type = request.headers.get("content-type") ?? "";
  const boundary = limits.acceptsForms === true ? parseFormBoundary(type) : null;
  const refusal = refuseHeaders(request.headers, boundary !== null);
  if (refusal !== null) return refusal;
  const bytes = await readBodyBytes(request, limits);
  if (!bytes.ok) return bytes;
  if (boundary !== null) return formBody(bytes.value, boundary);
  const json = parseJsonBytes(bytes.value);
  return json.ok ? success({ json: json.value, bytes: bytes.value }) : json;
}

function formBody(bytes: Uint8Array, boundary: string): Result<JsonBody> {
  const form = parseForm(bytes, boundary);
  if (!form.ok) return form;
  const json = formToObject(form.value);
  return json.ok ? success({ json: { ...json.value }, bytes, form: form.value }) : json;
}

export function parseJsonBytes(bytes: Uint8Array): Result<JsonObject> {
  const text = decode(bytes);
  return text.ok ? parseJsonText(text.value) : text;
}

function refuseHeaders(headers: Headers, isForm: boolean): Refusal | null {
  const type = headers.get("content-type") ?? "";
  const isJson = type.length <= TYPE_CHARACTERS_MAX && JSON_TYPE.test(type);
  if (type !== "application/json" && !isJson && !isForm) {
    return refuse({ kind: "unsupported_media_type", message: NOT_JSON });
  }
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity") {
    return refuse({ kind: "unsupported_media_type", message: COMPRESSED });
  }
  return null;
}

type Bytes = Result<Uint8Array>;

export async function readBodyBytes(request: Request, limits: BodyLimits): Promise<Bytes> {
  const declared = request.headers.get("content-length") ?? "";
  if (Number(declared) > limits.bytesMax) return tooLarge(limits.bytesMax);
  // Reading a small body in one call costs half as much as chunks.
  const isDeclared = /^\d+$/.test(declared) && Number(declared) <= SINGLE_READ_BYTES_MAX;
  return isDeclared ? readWhole(request, limits) : readChunks(request, limits);
}

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
    const read = await Promise.race([reader.read(), deadline]);
    if (read === "late") return cancelReading(reader, refuse({ kind: "request_timeout" }));
    if (read.done) return success(joinBytes(chunks, length));
    length += read.value.byteLength;
    if (length > bytesMax) return cancelReading(reader, tooLarge(bytesMax));
    if (hasRoom?.(read.value.byteLength) === false) {
      return cancelReading(reader, refuse({ kind: "overloaded" }));
    }
    chunks.push(read.value);
  }
}

function cancelReading(reader: Reader, refusal: Refusal): Refusal {
  reader.cancel().catch(() => undefined);
  return refusal;
}

/**
 * A decoder that keeps a byte order mark, so that the gateway rejects it (RFC 8259 section 8.1).
 */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(bytes: Uint8Array): Result<string> {
  if (bytes.byteLength === 0) return invalid("The request body is empty.");
  try {
    const text = utf8.decode(bytes);
    if (text.charCodeAt(0) === 0xfeff) {
      return invalid("The request body can't start with a byte order mark.");
    }
    return success(text);
  } catch {
    return invalid("The request body is not valid UTF-8.");
  }
}

function tooLarge(bytesMax: number): Refusal {
  return refuse({ kind: "body_too_large", bytesMax });
}
