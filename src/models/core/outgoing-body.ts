import { joinBytes } from "../../shared/http/bounded-body.ts";
import type { FormField } from "../../shared/http/form.ts";
import { toBase64 } from "./data-url.ts";
import { hexOf, sha256Hex } from "../../shared/hash.ts";
import { randomBase62 } from "../../shared/id.ts";

export type OutgoingBody = string | BodyWithDownloadedImages;

export type DownloadedImages = ReadonlyMap<string, readonly Uint8Array[]>;

/** Bytes per encoding step. A multiple of 3, because base64 then needs no padding. */
const STEP_BYTES = 48 * 1024;
const MARKER = /(download:[A-Za-z0-9]{24})/;

/**
 * Adds an image. Returns a marker for the request's JSON. The image's base64 later replaces the
 * marker.
 */
export function addImage(
  images: Map<string, readonly Uint8Array[]>,
  parts: readonly Uint8Array[],
): string {
  const marker = `download:${randomBase62(24)}`;
  images.set(marker, parts);
  return marker;
}

/** Returns a body that encodes its downloaded images while it is sent, without a second copy. */
export function createOutgoingBody(value: object, downloads: DownloadedImages): OutgoingBody {
  const json = JSON.stringify(value);
  return downloads.size === 0 ? json : new BodyWithDownloadedImages(json, downloads);
}

export class BodyWithDownloadedImages {
  readonly #texts: readonly string[];
  readonly #downloads: DownloadedImages;

  constructor(json: string, downloads: DownloadedImages) {
    this.#texts = json.split(MARKER);
    this.#downloads = downloads;
  }

  get length(): number {
    return this.#texts.reduce((sum, text) => {
      const parts = this.#downloads.get(text);
      if (parts === undefined) return sum + new TextEncoder().encode(text).length;
      const bytes = parts.reduce((all, part) => all + part.length, 0);
      return sum + Math.ceil(bytes / 3) * 4;
    }, 0);
  }

  stream(): ReadableStream<Uint8Array> {
    return streamOf(this.#pieces(), this.length);
  }

  async sha256(): Promise<string> {
    const { DigestStream } = crypto as WorkersCrypto;
    if (DigestStream === undefined) {
      return sha256Hex(new Uint8Array(joinBytes([...this.#pieces()], this.length)));
    }
    const digest = new DigestStream("SHA-256");
    await writePieces(this.#pieces(), digest);
    return hexOf(new Uint8Array(await digest.digest));
  }

  *#pieces(): Generator<Uint8Array> {
    for (const text of this.#texts) {
      const parts = this.#downloads.get(text);
      if (parts === undefined) yield new TextEncoder().encode(text);
      else yield* encodeParts(parts);
    }
  }
}

export class MultipartForm {
  readonly type: string;
  readonly #pieces: readonly Uint8Array[];

  constructor(fields: readonly FormField[]) {
    const boundary = crypto.randomUUID();
    const encoder = new TextEncoder();
    this.type = `multipart/form-data; boundary=${boundary}`;
    const pieces = fields.flatMap(([name, value]) => {
      const head = `--${boundary}\r\ncontent-disposition: form-data; name="${name}"`;
      if (typeof value === "string") return [encoder.encode(`${head}\r\n\r\n${value}\r\n`)];
      const file = `; filename="${plainFileName(value.filename)}"\r\n`;
      const type = `content-type: ${plainType(value.type)}\r\n\r\n`;
      return [encoder.encode(head + file + type), value.bytes, encoder.encode("\r\n")];
    });
    this.#pieces = [...pieces, encoder.encode(`--${boundary}--\r\n`)];
  }

  stream(): ReadableStream<Uint8Array> {
    const length = this.#pieces.reduce((sum, piece) => sum + piece.length, 0);
    return streamOf(this.#pieces, length);
  }
}

/**
 * Replaces a file name's ambiguous characters. Keeps the extension, by which some hosts detect the
 * format.
 */
function plainFileName(filename: string): string {
  return filename.replaceAll(/[^!#-[\]-~]/g, "_") || "file";
}

/** Removes the parameters of a media type, because some hosts reject them. */
function plainType(type: string): string {
  const [essence] = /^[\w.+-]+\/[\w.+-]+(?=$|\s*;)/.exec(type) ?? [];
  return essence ?? "application/octet-stream";
}

function streamOf(pieces: Iterable<Uint8Array>, length: number): ReadableStream<Uint8Array> {
  // Some hosts require `content-length`. The platform sets it only for a FixedLengthStream.
  const { FixedLengthStream } = globalThis as WorkersGlobals;
  const { readable, writable } =
    FixedLengthStream === undefined
      ? new TransformStream<Uint8Array, Uint8Array>()
      : new FixedLengthStream(length);
  void writePieces(pieces, writable);
  return readable;
}

/** Classes that only Workers have. Scripts run this code in Node. */
type WorkersGlobals = {
  readonly FixedLengthStream?: new (bytes: number) => TransformStream<Uint8Array, Uint8Array>;
};
type WorkersCrypto = {
  readonly DigestStream?: new (
    algorithm: string,
  ) => WritableStream<Uint8Array> & { readonly digest: Promise<ArrayBuffer> };
};

function* encodeParts(parts: readonly Uint8Array[]): Generator<Uint8Array> {
  let rest = new Uint8Array();
  for (const part of parts) {
    const bytes = rest.length === 0 ? part : joinBytes([rest, part], rest.length + part.length);
    const whole = bytes.length - (bytes.length % 3);
    for (let at = 0; at < whole; at += STEP_BYTES) {
      yield encodeBase64(bytes.subarray(at, Math.min(whole, at + STEP_BYTES)));
    }
    rest = bytes.slice(whole);
  }
  if (rest.length > 0) yield encodeBase64(rest);
}

function encodeBase64(bytes: Uint8Array): Uint8Array {
  return new TextEncoder().encode(toBase64(bytes));
}

async function writePieces(
  pieces: Iterable<Uint8Array>,
  to: WritableStream<Uint8Array>,
): Promise<void> {
  const writer = to.getWriter();
  try {
    for (const piece of pieces) {
      await writer.write(piece);
    }
    await writer.close();
  } catch {}
}
