import type { Context, Handler } from "hono";
import type { HonoBase } from "hono/hono-base";
import { fail } from "./context.ts";
import type { AppEnv } from "./context.ts";

const PATH_SHOWN_MAX = 200;
/** What clients ask for by default that is not here, and what they are told instead; with the paths below. */
const HINTS: Readonly<Record<string, string>> = {
  "/v1/v1":
    " Your client adds /v1 to the base address by itself: give it one that ends before that.",
  "/v1/responses": " Responses are not stored here: send the whole input to POST /v1/responses.",
};

/** An unknown path: 404 as JSON, naming the path that is meant where clients are known to err. */
export function notFound(c: Context<AppEnv>): Response {
  const path = c.req.path;
  const shown = `Unknown path: ${c.req.method} ${path.slice(0, PATH_SHOWN_MAX)}.`;
  return fail(c, { kind: "not_found", message: `${shown}${hint(path)}` });
}

/**
 * Answers every method that `rows` do not have on one of their paths with 405 and `allow`. Goes after their
 * handlers. HEAD is answered wherever GET is.
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

function hint(path: string): string {
  for (const [other, instead] of Object.entries(HINTS)) {
    if (path === other || path.startsWith(`${other}/`)) return instead;
  }
  return path.startsWith("/v1/") ? "" : " The interface's paths begin with /v1.";
}
