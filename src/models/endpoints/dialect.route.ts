import type { Context, Next } from "hono";
import type { AppEnv } from "../../shared/http/context.ts";
import type { Dialect } from "../../shared/http/dialect.ts";
import { isMessagesClient } from "../catalog/models.route.ts";
import type { EndpointContext } from "../core/endpoint-adapter.ts";
import { isOpenRouterClient } from "../core/gateway-fields.ts";
import { openRouterDialect } from "../../shared/http/failure-response.ts";
import { ENDPOINTS } from "./endpoints.ts";
import { messagesDialect } from "../protocols/messages/client-dialect.ts";

const DIALECTS: ReadonlyMap<string, (typeof ENDPOINTS)[number]["errorFormat"]> = new Map(
  ENDPOINTS.map(({ path, errorFormat }) => [path, errorFormat]),
);

/** Middleware that selects the path's error format. Runs before any middleware that can fail. */
export function selectDialect(c: Context<AppEnv>, next: Next): Promise<void> {
  // A repeated prefix `/v1` doesn't change the error format.
  const path = c.req.path.replace(/^\/v1(?=\/v1\/)/, "");
  const dialect = findDialect(path, {
    header: (name) => c.req.header(name),
    query: (name) => c.req.query(name),
  });
  if (dialect !== null) c.set("dialect", dialect);
  return next();
}

/** Returns the error format of a path, or null for the default. */
export function findDialect(path: string, at: EndpointContext): Dialect | null {
  const own = DIALECTS.get(path)?.(at) ?? null;
  if (own !== null) return own;
  const isList = /^\/v1\/models(?:\/|$)/.test(path);
  if (path.startsWith("/v1/messages/") || (isList && isMessagesClient(at))) return messagesDialect;
  return isOpenRouterClient(at) ? openRouterDialect : null;
}
