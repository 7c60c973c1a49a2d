import { getPath } from "hono/utils/url";

/**
 * The path that routes are matched on: `//models` and `/models/` are `/models` (clients join base
 * URLs carelessly). An encoded slash stays encoded, so ids that hold one keep it.
 */
export function routingPath(request: Request): string {
  const path = getPath(request);
  if (!path.includes("//") && !path.endsWith("/")) return path;
  const single = path.replaceAll(/\/{2,}/g, "/");
  return single.length > 1 && single.endsWith("/") ? single.slice(0, -1) : single;
}

/**
 * Whether every percent-escape in the URL's path is one, and is UTF-8. Otherwise the router would
 * pass it on undecoded, and `%zz` and `%25zz` would name the same thing.
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
