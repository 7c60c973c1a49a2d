import * as z from "zod/mini";

/** An image, inline or by URL, or a PDF if supported. */
export type Image =
  | { readonly mediaType: string; readonly base64: string }
  | { readonly url: string };

const HEAD_MAX = 256;
const URL_MAX = 2048;

/** Parses a data URL (RFC 2397) as browsers and SDKs write it. */
export function imageOf(url: string): Image {
  const head = url.slice(0, url.slice(0, HEAD_MAX).indexOf(",") + 1);
  const match = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^;,]+)*;base64,$/i.exec(head);
  if (match === null) return { url };
  return { mediaType: (match[1] ?? "").toLowerCase(), base64: url.slice(head.length) };
}

/** Reports whether a URL contains an image's bytes, which aren't sized as text. */
export function isInlineImage(url: string): boolean {
  return "base64" in imageOf(url);
}

/** An image's URL. Only a data URL may be long, because all other text is counted. */
export const imageUrl = z
  .string()
  .check(
    z.refine(
      (url) => url.length <= URL_MAX || isInlineImage(url),
      `must be a base64 data URL or have at most ${URL_MAX} characters`,
    ),
  );
