import { env } from "cloudflare:workers";
import { Hono } from "hono";
import { expect } from "vitest";
import { fail, failUnexpectedly, requestContext } from "../../src/shared/http/context.ts";
import type { AppEnv } from "../../src/shared/http/context.ts";
import { notFound, refuseOtherMethods } from "../../src/shared/http/not-found.ts";
import { routingPath } from "../../src/shared/http/routing-path.ts";

/** Stands for the caller's data, which must not be logged or returned. */
export const SECRET = "a-secret-that-must-not-be-seen";
const admitted = {
  caller: {
    keyId: "key_1",
    keyHash: SECRET,
    orgId: "org-1",
    memberId: "member-1",
    scope: "regional",
    home: "eu",
  },
  rate: { limit: 60, remaining: 59, resetMs: 999 },
} as const;

/** Ends the open streams of `/v1/stream`, each of which has sent its first event. */
export function endStreams(): void {
  for (const end of endings.splice(0)) end();
}
const endings: (() => void)[] = [];

const app = new Hono<AppEnv>({ getPath: routingPath });
app.use(requestContext);
app.notFound(notFound);
app.onError(failUnexpectedly);

app.get("/healthz", (c) => c.json({ version: c.get("config").version }));
app.get("/v1/models", (c) => c.json({ ok: true }));
refuseOtherMethods(app, [{ method: "GET", path: "/v1/models" }]);
app.get("/v1/models/:id{.+}", (c) => c.json({ id: c.req.param("id") }));
app.post("/v1/chat/completions", (c) => {
  c.set("admitted", admitted);
  return fail(c, { kind: "too_many_end_users" });
});
refuseOtherMethods(app, [{ method: "POST", path: "/v1/chat/completions" }]);
app.get("/v1/copied", () => Response.redirect("http://eu.test/elsewhere", 302));
app.get("/v1/empty", (c) => c.body(null, 204));
app.get("/v1/throws", () => {
  throw new TypeError(`broken by ${SECRET}`);
});
app.get("/v1/throws-text", () => {
  // oxlint-disable-next-line no-throw-literal, typescript/only-throw-error -- what a bug may do
  throw SECRET;
});
app.get("/v1/stream", () => {
  const end = Promise.withResolvers<void>();
  endings.push(end.resolve);
  const encoder = new TextEncoder();
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const write = async (): Promise<void> => {
    await writer.write(encoder.encode("data: 1\n\n"));
    await end.promise;
    await writer.write(encoder.encode("data: [DONE]\n\n"));
    await writer.close();
  };
  void write();
  return new Response(readable, {
    headers: { "content-type": "text/event-stream; charset=utf-8" },
  });
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
