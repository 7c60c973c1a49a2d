import * as z from "zod/mini";

export type Image =
  | { readonly mediaType: string; readonly base64: string }
  | { readonly url: string };

const HEAD_MAX = 256;
const URL_MAX = 2048;

/** Parses a data URL (RFC 2397) in the forms that browsers and SDKs write. */
export function imageOf(url: string): Image {
  const head = url.slice(0, url.slice(0, HEAD_MAX).indexOf(",") + 1);
  const match = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^;,]+)*;base64,$/i.exec(head);
  if (match === null) return { url };
  return { mediaType: (match[1] ?? "").toLowerCase(), base64: url.slice(head.length) };
}

/** Reports whether a URL contains an image's bytes. They don't count as text of the prompt. */
export function isInlineImage(url: string): boolean {
  return "base64" in imageOf(url);
}

/** The URL of an image. Only a data URL can be long, because all other text counts. */
export const imageUrl = z
  .string()
  .check(
    z.refine(
      (url) => url.length <= URL_MAX || isInlineImage(url),
      `must be a base64 data URL or have at most ${URL_MAX} characters`,
    ),
  );
