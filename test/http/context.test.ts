import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { parseConfig } from "../../src/shared/config/config.ts";
import { mintTimeOf } from "../../src/shared/id.ts";
import { SECRET, call, endStreams, errorOf } from "./wire-app.ts";

let lines: string[] = [];
beforeEach(() => {
  lines = [];
  vi.spyOn(console, "log").mockImplementation((line: string) => void lines.push(line));
});

const logged = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

describe("every response", () => {
  it.each([
    ["200", "/v1/models", "GET", 200],
    ["404", "/nowhere", "GET", 404],
    ["405", "/v1/models", "POST", 405],
    ["preflight", "/v1/models", "OPTIONS", 204],
    ["HEAD", "/v1/models", "HEAD", 200],
    ["400", "/v1/models/%zz", "GET", 400],
    ["500", "/v1/throws", "GET", 500],
    ["a 500 for a thrown string", "/v1/throws-text", "GET", 500],
    ["a redirect, whose headers are immutable", "/v1/copied", "GET", 302],
    ["204", "/v1/empty", "GET", 204],
  ])("contains the gateway's ID and headers once: %s", async (_, path, method, status) => {
    const theirs = { method, headers: { "x-request-id": "req_theirs" } };
    const [one, two] = [await call(path, theirs), await call(path, theirs)];
    expect(one.status).toBe(status);
    const id = one.headers.get("x-request-id") ?? "";
    expect(mintTimeOf(id, "req_")).not.toBeNull();
    expect(two.headers.get("x-request-id")).not.toBe(id);
    expect(one.headers.get("x-content-type-options")).toBe("nosniff");
    expect(one.headers.get("cache-control")).toBe("no-store");
    expect(one.headers.has("server")).toBe(false);
    expect(one.headers.has("access-control-allow-origin")).toBe(false);
    expect(
      logged().filter((line) => line["request_id"] === id && line["event"] === "request"),
    ).toHaveLength(1);
  });

  it("keeps the status and location of an immutable response", async () => {
    const response = await call("/v1/copied", { redirect: "manual" });
    expect(response.headers.get("location")).toBe("http://eu.test/elsewhere");
  });

  it("contains the organization and the key's limit if authenticated, even for an error", async () => {
    const response = await call("/v1/chat/completions", { method: "POST" });
    expect(response.status).toBe(429);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "openai-organization": "org-1",
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-remaining-requests": "59",
      "x-ratelimit-reset-requests": "1s",
      "x-should-retry": "false",
    });
  });

  it("contains no body for HEAD, whatever the status", async () => {
    for (const path of ["/v1/models", "/nowhere", "/v1/chat/completions", "/v1/throws"]) {
      const response = await call(path, { method: "HEAD" });
      expect(response.body).toBeNull();
    }
  });
});

it("a stream passes through the Worker without buffering, caching or transformation", async () => {
  const response = await call("/v1/stream");
  expect(response.headers.get("cache-control")).toBe("no-cache, no-transform");
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  expect((await reader?.read())?.value).toBe("data: 1\n\n");
  endStreams();
  expect((await reader?.read())?.value).toBe("data: [DONE]\n\n");
  expect((await reader?.read())?.done).toBe(true);
});

describe("a misconfigured deployment", () => {
  const broken = { ...env, KEY_SECRETS: `a:${SECRET.slice(0, 20)}`, ADMIN_TOKEN: "" };

  it.each(["/v1/models", "/healthz", "/nowhere", "/"])("returns 503 for %s", async (path) => {
    const response = await call(path, {}, { ...broken });
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("30");
    expect(mintTimeOf(response.headers.get("x-request-id") ?? "", "req_")).not.toBeNull();
    expect(await errorOf(response)).toMatchObject({ type: "api_error", code: "misconfigured" });
  });

  it("logs the variables' names in one line without values, and returns neither names nor values", async () => {
    expect(parseConfig(broken).ok).toBe(false);
    const text = await (await call("/v1/models", {}, broken)).text();
    const line = logged().find(({ event }) => event === "misconfigured");
    expect(JSON.stringify(line)).toMatch(/KEY_SECRETS.*ADMIN_TOKEN|ADMIN_TOKEN.*KEY_SECRETS/);
    expect(lines.join()).not.toContain(SECRET.slice(0, 20));
    expect(text).not.toContain("KEY_SECRETS");
  });
});

describe("the request log", () => {
  it("contains one line per request with the route's pattern, and no data from the caller", async () => {
    await call(`/v1/models/${SECRET}?q=${SECRET}`, {
      headers: { authorization: `Bearer ${SECRET}` },
    });
    await call("/v1/chat/completions", { method: "POST" });
    await call(`/${SECRET}`);
    expect(lines.join()).not.toContain(SECRET);
    const common = { event: "request", duration_ms: expect.any(Number) as number };
    const nobody = { org_id: null, key_id: null };
    expect(logged().map(({ request_id: _id, ...line }) => line)).toEqual([
      {
        ...common,
        ...nobody,
        method: "GET",
        route: "/v1/models/:id{.+}",
        status: 200,
        failure: null,
      },
      {
        ...common,
        method: "POST",
        route: "/v1/chat/completions",
        status: 429,
        org_id: "org-1",
        key_id: "key_1",
        failure: "too_many_end_users",
      },
      { ...common, ...nobody, method: "GET", route: "/*", status: 404, failure: "not_found" },
    ]);
  });

  it.each([
    ["/v1/throws", "TypeError", true],
    ["/v1/throws-text", "thrown string", false],
  ])("contains an exception in %s once, without its content", async (path, name, hasFrames) => {
    const response = await call(path);
    const error = await errorOf(response);
    expect(error).toMatchObject({ type: "api_error", code: null });
    expect(JSON.stringify(error) + lines.join()).not.toContain(SECRET);
    const exceptions = logged().filter(({ event }) => event === "exception");
    const request_id = response.headers.get("x-request-id");
    expect(exceptions).toMatchObject([{ event: "exception", name, request_id }]);
    expect(JSON.stringify(exceptions[0]?.["stack"]).includes("wire-app")).toBe(hasFrames);
  });
});
