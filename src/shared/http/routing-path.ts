import { getPath } from "hono/utils/url";

/**
 * Returns the path for matching routes: `/models` for `//models` and `/models/`, `/v1/rerank` for
 * `/v2/rerank`. Encoded slashes stay encoded.
 */
export function routingPath(request: Request): string {
  const path = getPath(request);
  if (!path.includes("//") && !path.endsWith("/")) return renamed(path);
  const single = path.replaceAll(/\/{2,}/g, "/");
  return renamed(single.length > 1 && single.endsWith("/") ? single.slice(0, -1) : single);
}

/** Replaces the path of Cohere's SDKs, which add `v2` to the base URL. */
function renamed(path: string): string {
  return path === "/v2/rerank" ? "/v1/rerank" : path;
}

/**
 * Reports whether all percent-escapes are valid. The router leaves invalid ones unchanged, so `%zz`
 * and `%25zz` would be one path.
 */
export function hasValidEscapes(url: string): boolean {
  if (!url.includes("%")) return true;
  const [path = ""] = url.split(/[?#]/, 1);
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
