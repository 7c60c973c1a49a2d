import { FormFile } from "../../shared/http/form.ts";
import * as z from "zod/mini";

/** Maximum arguments of `String.fromCharCode`, because arguments use the stack. */
const ARGUMENTS_MAX = 8192;

/** Encodes base64. Also runs in Node, which has no `Uint8Array.toBase64`. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += ARGUMENTS_MAX) {
    binary += String.fromCharCode(...bytes.subarray(at, at + ARGUMENTS_MAX));
  }
  return btoa(binary);
}

export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Decodes base64 to one character per byte. Returns null for invalid base64. */
export function decodeBase64(text: string): string | null {
  try {
    return atob(text);
  } catch {
    return null;
  }
}

const DATA_URL = /^data:((audio|video|image)\/[\w.+-]{1,64});base64,([A-Za-z0-9+/]{2,}(={0,2}))$/;

/**
 * Reports whether a data URL has one of these media types and valid base64. The padding can be
 * absent, but not incomplete.
 */
export function isDataUrl(url: string, media: readonly string[]): boolean {
  const [, , group = "", data = "", padding = ""] = DATA_URL.exec(url) ?? [];
  if (!media.includes(group)) return false;
  return padding === "" ? data.length % 4 !== 1 : data.length % 4 === 0;
}

export function dataUrlToFile(url: string): FormFile {
  const [, type = "", group = "", data = ""] = DATA_URL.exec(url) ?? [];
  return new FormFile(`${group}.${type.split("/")[1]}`, type, fromBase64(data));
}

export type ParsedImageUrl =
  | { readonly mediaType: string; readonly base64: string }
  | { readonly url: string };

const HEAD_MAX = 256;
const URL_MAX = 2048;

/** Parses a data URL (RFC 2397) in the forms that browsers and SDKs write. */
export function parseImageUrl(url: string): ParsedImageUrl {
  const head = url.slice(0, url.slice(0, HEAD_MAX).indexOf(",") + 1);
  const match = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^;,]+)*;base64,$/i.exec(head);
  if (match === null) return { url };
  return { mediaType: (match[1] ?? "").toLowerCase(), base64: url.slice(head.length) };
}

/** Reports whether a URL contains an image. Such a URL doesn't count as prompt text. */
export function isInlineImage(url: string): boolean {
  return "base64" in parseImageUrl(url);
}

/** The first bytes of PNG, JPEG, GIF, WebP and HEIF files, in base64. */
const IMAGE_START = /^(?:iVBORw0KGgo|\/9j\/|R0lGOD|UklGR.{7}RUJQ|.{5}[GWm2]Z0eXB)/;

/**
 * Reports whether base64 or a data URL starts with an image's signature. Other data counts as text.
 */
export function isImageData(text: string): boolean {
  const image = parseImageUrl(text);
  const base64 = "base64" in image ? image.base64 : text;
  return IMAGE_START.test(base64.slice(0, HEAD_MAX).trimStart());
}

/** An image URL. Only data URLs have no length limit, because other URLs count as prompt text. */
export const imageUrlSchema = z
  .string()
  .check(
    z.refine(
      (url) => url.length <= URL_MAX || isInlineImage(url),
      `must be a base64 data URL or have at most ${URL_MAX} characters`,
    ),
  );
