const EXPOSED_HEADERS = [
  "x-request-id",
  "location",
  "content-disposition",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-tokens",
  "request-id",
  "anthropic-ratelimit-requests-limit",
  "anthropic-ratelimit-requests-remaining",
  "anthropic-ratelimit-requests-reset",
  "anthropic-ratelimit-tokens-limit",
  "anthropic-ratelimit-tokens-remaining",
  "anthropic-ratelimit-tokens-reset",
  "x-cost-micro",
  "x-route",
  "x-attempts",
  "x-granted-max-tokens",
  "x-dropped",
  "openai-organization",
].join(", ");
const METHODS = "GET, HEAD, POST, PATCH, DELETE, OPTIONS";
const DAY_S = "86400";

export function allowsAnyOrigin(path: string): boolean {
  return path === "/v1" || path.startsWith("/v1/");
}

/**
 * Returns the response to a CORS preflight. It allows the requested headers by name, because `*`
 * excludes Authorization.
 */
export function preflightResponse(request: Request): Response {
  const requested = request.headers.get("access-control-request-headers");
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": METHODS,
      "access-control-allow-headers": requested ?? "authorization, content-type",
      "access-control-max-age": DAY_S,
      vary: "access-control-request-headers",
    },
  });
}

/** Allows the request's origin, but no credentials, so no page can use a visitor's cookies. */
export function addCorsHeaders(
  headers: Headers,
  origin: string | undefined,
  origins: readonly string[] | null,
): void {
  if (origin === undefined) return;
  if (origins !== null) headers.append("vary", "origin");
  if (origins !== null && !origins.includes(origin)) return;
  headers.set("access-control-allow-origin", origins === null ? "*" : origin);
  headers.set("access-control-expose-headers", EXPOSED_HEADERS);
}
