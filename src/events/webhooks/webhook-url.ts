import { parsePublicUrl } from "../../shared/public-address.ts";

const LENGTH_MAX = 2048;
/** Characters that URL parsers drop or encode. */
// oxlint-disable-next-line no-control-regex -- it searches for control characters
const UNPRINTABLE = /[\s\u0000-\u001f\u007f-\u009f]/;

/**
 * Returns the URL, or the reason why it is invalid. It must be public and have no fragment. The
 * sandbox also allows HTTP on 127.0.0.1.
 */
export function parseWebhookUrl(text: string, sandbox: boolean): URL | string {
  if (text.length > LENGTH_MAX) return `must have at most ${LENGTH_MAX} characters`;
  if (UNPRINTABLE.test(text) || !text.isWellFormed()) return "must be a URL";
  const local = URL.parse(text);
  if (sandbox && local?.protocol === "http:" && local.hostname === "127.0.0.1") return local;
  const url = parsePublicUrl(text);
  if (typeof url === "string") return url;
  if (url.hash !== "") return "must not have a fragment";
  return url.href.length > LENGTH_MAX ? `must have at most ${LENGTH_MAX} characters` : url;
}
