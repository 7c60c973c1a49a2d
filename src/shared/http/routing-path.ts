import { getPath } from "hono/utils/url";

/**
 * Returns the path for route matching: `//models` and `/models/` become `/models`. Encoded slashes stay
 * encoded, so IDs keep them.
 */
export function routingPath(request: Request): string {
  const path = getPath(request);
  if (!path.includes("//") && !path.endsWith("/")) return path;
  const single = path.replaceAll(/\/{2,}/g, "/");
  return single.length > 1 && single.endsWith("/") ? single.slice(0, -1) : single;
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
