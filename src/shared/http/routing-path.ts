import { getPath } from "hono/utils/url";

/**
 * Returns the path for route matching: `//models` and `/models/` become `/models`. Encoded slashes stay
 * encoded, so IDs keep them. `/v2/rerank` is `/v1/rerank`.
 */
export function routingPath(request: Request): string {
  const path = getPath(request);
  if (!path.includes("//") && !path.endsWith("/")) return renamed(path);
  const single = path.replaceAll(/\/{2,}/g, "/");
  return renamed(single.length > 1 && single.endsWith("/") ? single.slice(0, -1) : single);
}

/** Cohere's SDKs add `v2` to the base address. */
function renamed(path: string): string {
  return path === "/v2/rerank" ? "/v1/rerank" : path;
}

/**
 * Reports whether every percent-escape in the path is valid UTF-8. Otherwise the router would not decode it,
 * and `%zz` and `%25zz` would be the same.
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
