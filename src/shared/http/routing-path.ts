import { getPath } from "hono/utils/url";

/**
 * Returns the path for matching routes: `/models` for `//models` and `/models/`, `/v1/rerank` for
 * `/v2/rerank`. Encoded slashes stay encoded.
 */
export function routingPath(request: Request): string {
  const path = getPath(request);
  if (!path.includes("//") && !path.endsWith("/")) return replacePrefix(path);
  const normalized = path.replaceAll(/\/{2,}/g, "/");
  return replacePrefix(
    normalized.length > 1 && normalized.endsWith("/") ? normalized.slice(0, -1) : normalized,
  );
}

/** Replaces the `/v2/rerank` that Cohere's SDKs append to the base URL. */
function replacePrefix(path: string): string {
  return path === "/v2/rerank" ? "/v1/rerank" : path;
}

/**
 * Reports whether the path's percent-escapes are valid. Without this check, `%zz` and `%25zz` would
 * match the same route.
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
