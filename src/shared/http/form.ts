import { invalid, success } from "../failure.ts";
import type { Result } from "../failure.ts";
import { sha256Hex } from "../hash.ts";

export class FormFile {
  readonly filename: string;
  readonly type: string;
  readonly bytes: Uint8Array;

  constructor(filename: string, type: string, bytes: Uint8Array) {
    this.filename = filename;
    this.type = type;
    this.bytes = bytes;
  }
}

export type FormField = readonly [name: string, value: string | FormFile];

const FIELDS_MAX = 256;
const HEADER_BYTES_MAX = 4096;
const CR = 13;
const LF = 10;
const DASHES = "--";

const TYPE = /^multipart\/form-data\s*;/i;
const BOUNDARY = /;\s*boundary=(?:"([^"]{1,70})"|([^\s";,]{1,70}))\s*(?:;|$)/i;
const TYPE_CHARACTERS_MAX = 200;

export function parseFormBoundary(type: string): string | null {
  const isForm = type.length <= TYPE_CHARACTERS_MAX && TYPE.test(type);
  const [, quoted, plain] = (isForm && BOUNDARY.exec(type)) || [];
  const boundary = quoted ?? plain ?? null;
  return boundary !== null && /^[\x20-\x7e]+$/.test(boundary) ? boundary : null;
}

const BROKEN = "The request body is not valid multipart/form-data.";

/** Parses a multipart form without copying its files. Fails with 400. */
export function parseForm(bytes: Uint8Array, boundary: string): Result<readonly FormField[]> {
  const mark = new TextEncoder().encode(`\r\n${DASHES}${boundary}`);
  const fields: FormField[] = [];
  if (!isAt(bytes, 0, mark.subarray(2))) return invalid(BROKEN);
  let at = mark.length - 2;
  while (!isAt(bytes, at, CLOSE_MARK)) {
    const from = isAt(bytes, at, LINE_END) ? at + LINE_END.length : -1;
    const until =
      from < 0 ? -1 : indexOf(bytes, BLANK_LINE, from - LINE_END.length, HEADER_BYTES_MAX);
    if (until < 0 || fields.length === FIELDS_MAX) return invalid(BROKEN);
    const contentStart = until + BLANK_LINE.length;
    const end = indexOf(bytes, mark, contentStart, bytes.length);
    const header = end < 0 ? null : textOf(bytes.subarray(from, until));
    const field = header === null ? null : fieldOf(header, bytes.subarray(contentStart, end));
    if (field === null) return invalid(BROKEN);
    fields.push(field);
    at = end + mark.length;
  }
  return success(fields);
}

const CLOSE_MARK = new TextEncoder().encode(DASHES);
const LINE_END = new Uint8Array([CR, LF]);
const BLANK_LINE = new Uint8Array([CR, LF, CR, LF]);

function isAt(bytes: Uint8Array, at: number, pattern: Uint8Array): boolean {
  return pattern.every((byte, offset) => bytes[at + offset] === byte);
}

/**
 * Returns the position of a boundary, or -1. Takes linear time, because a boundary's only CR is its
 * first byte.
 */
function indexOf(bytes: Uint8Array, pattern: Uint8Array, from: number, bytesMax: number): number {
  const end = Math.min(bytes.length, from + bytesMax);
  for (let at = from; at < end; at++) {
    if (bytes[at] === CR && bytes[at + 1] === LF && isAt(bytes, at, pattern)) return at;
  }
  return -1;
}

function fieldOf(header: string, value: Uint8Array): FormField | null {
  const lines = header.split("\r\n");
  const disposition = lines.find((line) => /^content-disposition:\s*form-data/i.test(line)) ?? "";
  const name = /;\s*name="([^"\r\n]{1,100})"/i.exec(disposition)?.[1];
  if (name === undefined || lines.some((line) => /^content-transfer-encoding:/i.test(line))) {
    return null;
  }
  const filename = /;\s*filename="([^"\r\n]{0,1024})"/i.exec(disposition)?.[1];
  if (filename === undefined) {
    const text = textOf(value);
    return text === null ? null : [name, text];
  }
  const type = lines.flatMap((line) => /^content-type:\s*(\S.*)$/i.exec(line)?.[1] ?? [])[0];
  return [name, new FormFile(filename, type?.trim() ?? "application/octet-stream", value)];
}

function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/**
 * Returns a form's fields as an object, and repeated `name[]` fields as a list. Fails with 400 for
 * other repeated names.
 */
export function formToObject(fields: readonly FormField[]): Result<object> {
  const values = new Map<string, unknown>();
  for (const [name, value] of fields) {
    const isList = name.endsWith("[]");
    const plain = isList ? name.slice(0, -2) : name;
    const previousValue = values.get(plain);
    if (isList && Array.isArray(previousValue)) previousValue.push(value);
    else if (previousValue !== undefined) return invalid(`${plain} must be given once.`, plain);
    else values.set(plain, isList ? [value] : value);
  }
  return success(Object.fromEntries(values));
}

export async function serializeFormForHash(fields: readonly FormField[]): Promise<Uint8Array> {
  const parsedFields = fields.map(async ([name, value]) => {
    if (typeof value === "string") return [name, value];
    return [name, value.filename, value.type, await sha256Hex(value.bytes)];
  });
  return new TextEncoder().encode(JSON.stringify(await Promise.all(parsedFields)));
}
