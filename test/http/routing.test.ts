import { describe, expect, it } from "vitest";
import { call, endStreams, errorOf } from "./wire-app.ts";

async function meant(path: string, method = "POST"): Promise<unknown> {
  return (await errorOf(await call(path, { method })))["message"];
}

describe("a request's path", () => {
  it.each(["/v1/models/", "/v1//models", "//v1/models", "/v1/models//"])(
    "reaches its route as %s",
    async (path) => {
      expect(await (await call(path)).json()).toEqual({ ok: true });
    },
  );

  it.each([
    ["embeddings%2Fcheapest", "embeddings/cheapest"],
    ["embeddings/cheapest", "embeddings/cheapest"],
    ["a%2541", "a%41"],
    ["caf%C3%A9", "café"],
    ["a%2F", "a/"],
  ])("contains the ID %s, which is decoded once", async (written, id) => {
    expect(await (await call(`/v1/models/${written}`)).json()).toEqual({ id });
  });

  it.each(["%zz", "%", "a%4", "%ff", "%c3", "%25%zz"])(
    "results in a 400 as %s",
    async (written) => {
      const response = await call(`/v1/models/${written}?a=%41`);
      expect(response.status).toBe(400);
      expect(await errorOf(response)).toMatchObject({ type: "invalid_request_error" });
    },
  );

  it("reaches its route with any query", async () => {
    expect((await call("/v1/models?a=100%")).status).toBe(200);
  });

  it("results in a 404 with a hint for common mistakes", async () => {
    expect(await meant("/v1/responses/resp_1", "GET")).toBe(
      "Unknown path: GET /v1/responses/resp_1. Responses are not stored here. Send the whole input to POST /v1/responses.",
    );
    expect(await meant("/v1/other")).toBe("Unknown path: POST /v1/other.");
    expect(await meant("/models", "GET")).toContain("start with /v1");
    expect(await meant(`/v1/${"x".repeat(5000)}`)).toHaveLength(220);
  });

  it("results in a 405 with an allow header for other methods", async () => {
    const get = await call("/v1/chat/completions");
    expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"]);
    const put = await call("/v1/models", { method: "PUT" });
    expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    expect((await errorOf(put))["message"]).toBe("This path only supports GET or HEAD.");
  });
});

describe("a cross-origin request", () => {
  const origin = { origin: "https://app.example" };
  const asked = "authorization, content-type, x-stainless-arch, x-stainless-retry-count";

  it("gets a preflight without a key that allows the requested headers", async () => {
    const response = await call("/v1/chat/completions", {
      method: "OPTIONS",
      headers: {
        ...origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": asked,
      },
    });
    expect(response.status).toBe(204);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-headers": asked,
      "access-control-allow-methods": "GET, HEAD, POST, PATCH, DELETE, OPTIONS",
      "access-control-max-age": "86400",
    });
  });

  it.each([
    ["/v1/models", "GET", 200],
    ["/v1/nothing", "GET", 404],
    ["/v1/chat/completions", "POST", 429],
    ["/v1/chat/completions", "GET", 405],
    ["/v1/throws", "GET", 500],
    ["/v1/copied", "GET", 302],
    ["/v1/stream", "GET", 200],
  ])("can read %s %s from any page, without credentials (%i)", async (path, method, status) => {
    const response = await call(path, { method, headers: origin });
    expect(response.status).toBe(status);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.has("access-control-allow-credentials")).toBe(false);
    const exposed = (response.headers.get("access-control-expose-headers") ?? "").split(", ");
    expect(exposed).toEqual(
      expect.arrayContaining(["x-request-id", "retry-after", "retry-after-ms", "x-should-retry"]),
    );
    endStreams();
    await response.text();
  });

  it("fails outside /v1", async () => {
    const response = await call("/healthz", { headers: origin });
    expect(response.headers.has("access-control-allow-origin")).toBe(false);
    expect((await call("/healthz", { method: "OPTIONS", headers: origin })).status).toBe(404);
  });
});
