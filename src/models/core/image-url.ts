import * as z from "zod/mini";

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

/** Reports whether a URL contains an image's bytes, which don't count as prompt text. */
export function isInlineImage(url: string): boolean {
  return "base64" in parseImageUrl(url);
}

/** The first bytes of PNG, JPEG, GIF, WebP and HEIF files, in base64. */
const IMAGE_START = /^(?:iVBORw0KGgo|\/9j\/|R0lGOD|UklGR.{7}RUJQ|.{5}[GWm2]Z0eXB)/;

/** Reports whether base64 or a data URL starts like an image. Other data counts as text. */
export function isImageData(text: string): boolean {
  const image = parseImageUrl(text);
  const base64 = "base64" in image ? image.base64 : text;
  return IMAGE_START.test(base64.slice(0, HEAD_MAX).trimStart());
}

/** The URL of an image. Only a data URL can be long, because other URLs count as prompt text. */
export const imageUrl = z
  .string()
  .check(
    z.refine(
      (url) => url.length <= URL_MAX || isInlineImage(url),
      `must be a base64 data URL or have at most ${URL_MAX} characters`,
    ),
  );
