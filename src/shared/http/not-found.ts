import type { Handler } from "hono";
import type { HonoBase } from "hono/hono-base";
import { fail } from "./context.ts";
import type { AppContext, AppEnv } from "./context.ts";

const PATH_SHOWN_MAX = 200;
const HINTS: Readonly<Record<string, string>> = {
  "/v1/v1": " Your client adds /v1 to the base URL. Use a base URL without /v1.",
  "/v1/responses":
    " This path of the Responses API is not supported. Send the whole input to POST /v1/responses.",
};

const API_PATHS = /^\/(?:v1|admin|internal|console\/api|healthz)(?:\/|$)/;
const PAGES = { first: "/docs/welcome", none: "/docs/not-found" } as const;

export async function respondNotFound(c: AppContext): Promise<Response> {
  const path = c.req.path;
  const page = await findPage(c, path);
  if (page !== null) return page;
  const message = `Unknown path: ${c.req.method} ${path.slice(0, PATH_SHOWN_MAX)}.`;
  return fail(c, { kind: "not_found", message: `${message}${pathHint(path)}` });
}

async function findPage(c: AppContext, path: string): Promise<Response | null> {
  const { ASSETS: assets } = c.env as { readonly ASSETS?: Fetcher };
  const wantsPage = (c.req.header("accept") ?? "").includes("text/html");
  const isRead = c.req.method === "GET" || c.req.method === "HEAD";
  if (assets === undefined || !wantsPage || !isRead || API_PATHS.test(path)) return null;
  const isRootPath = path === "/";
  const at = new URL(isRootPath ? PAGES.first : PAGES.none, c.req.url);
  const page = await assets.fetch(new Request(at));
  if (!page.ok) return null;
  return new Response(page.body, { status: isRootPath ? 200 : 404, headers: page.headers });
}

/**
 * Responds with 405 to other methods of known paths. Register it after the handlers. HEAD works
 * wherever GET does.
 */
export function refuseOtherMethods(
  app: HonoBase<AppEnv>,
  rows: readonly { readonly method: string; readonly path: string }[],
): void {
  for (const path of new Set(rows.map((row) => row.path))) {
    const methods = rows.filter((row) => row.path === path).map(({ method }) => method);
    app.all(path, methodNotAllowed(methods));
  }
}

function methodNotAllowed(methods: readonly string[]): Handler<AppEnv> {
  const allow = methods.includes("GET") ? [...methods, "HEAD"] : methods;
  return (c) => fail(c, { kind: "method_not_allowed", allow });
}

function pathHint(path: string): string {
  for (const [other, instead] of Object.entries(HINTS)) {
    if (path === other || path.startsWith(`${other}/`)) return instead;
  }
  return path.startsWith("/v1/") ? "" : " The API's paths start with /v1.";
}
