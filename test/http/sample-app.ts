import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { expect } from "vitest";
import { respondToUnexpectedError, requestContext } from "../../src/shared/http/context.ts";
import type { AppEnv } from "../../src/shared/http/context.ts";
import { respondNotFound } from "../../src/shared/http/not-found.ts";
import { routingPath } from "../../src/shared/http/routing-path.ts";

/** Stands for the caller's data, which must not be logged or returned. */
export const SECRET = "a-secret-that-must-not-be-seen";
const app = new Hono<AppEnv>({ getPath: routingPath });
app.use(requestContext);
app.notFound(respondNotFound);
app.onError(respondToUnexpectedError);

app.get("/v1/models", (c) => c.json({ ok: true }));
app.get("/v1/copied", () => Response.redirect("http://eu.test/elsewhere", 302));
app.get("/v1/empty", (c) => c.body(null, 204));
app.get("/v1/throws", () => {
  throw new TypeError(`broken by ${SECRET}`);
});
app.get("/v1/throws-text", () => {
  // oxlint-disable-next-line no-throw-literal, typescript/only-throw-error -- what a bug may do
  throw SECRET;
});
/** Sends one request to a small application that has the real one's middleware. */
export async function call(
  path: string,
  init: RequestInit = {},
  bindings = env,
): Promise<Response> {
  return app.fetch(new Request(`https://eu.test${path}`, init), bindings);
}

/** Returns the `error` object of a JSON response that has no other fields. */
export async function errorOf(response: Response): Promise<Record<string, unknown>> {
  expect(response.headers.get("content-type")).toBe("application/json");
  const body = await response.json<{ error: Record<string, unknown> }>();
  expect(Object.keys(body)).toEqual(["error"]);
  expect(Object.keys(body.error)).toEqual(
    expect.arrayContaining(["message", "type", "param", "code"]),
  );
  return body.error;
}
