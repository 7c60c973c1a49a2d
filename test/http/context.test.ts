import { beforeEach, describe, expect, it, vi } from "vitest";
import { creationTimeOfId } from "../../src/shared/id.ts";
import { SECRET, call, errorOf } from "./sample-app.ts";

let lines: string[] = [];
beforeEach(() => {
  lines = [];
  vi.spyOn(console, "log").mockImplementation((line: string) => void lines.push(line));
});

const logged = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

describe("every HTTP response", () => {
  it.each([
    ["500", "/v1/throws", "GET", 500],
    ["a 500 for a thrown string", "/v1/throws-text", "GET", 500],
    ["a redirect, whose headers are immutable", "/v1/copied", "GET", 302],
    ["204", "/v1/empty", "GET", 204],
  ])(
    "contains a new request ID and the gateway's headers, for %s",
    async (_, path, method, status) => {
      const theirs = { method, headers: { "x-request-id": "req_theirs" } };
      const [one, two] = [await call(path, theirs), await call(path, theirs)];
      expect(one.status).toBe(status);
      const id = one.headers.get("x-request-id") ?? "";
      expect(creationTimeOfId(id, "req_")).not.toBeNull();
      expect(two.headers.get("x-request-id")).not.toBe(id);
      expect(one.headers.get("x-content-type-options")).toBe("nosniff");
      expect(one.headers.get("cache-control")).toBe("no-store");
      expect(one.headers.has("server")).toBe(false);
      expect(one.headers.has("access-control-allow-origin")).toBe(false);
      expect(
        logged().filter((line) => line["request_id"] === id && line["event"] === "request"),
      ).toHaveLength(1);
    },
  );

  it("keeps the location header of a redirect, even if the headers are immutable", async () => {
    const response = await call("/v1/copied", { redirect: "manual" });
    expect(response.headers.get("location")).toBe("http://eu.test/elsewhere");
  });

  it("contains no body for a HEAD request, whatever the status", async () => {
    for (const path of ["/v1/models", "/nowhere", "/v1/throws"]) {
      const response = await call(path, { method: "HEAD" });
      expect(response.body).toBeNull();
    }
  });
});

describe("the request log", () => {
  it.each([
    ["/v1/throws", "TypeError", true],
    ["/v1/throws-text", "thrown string", false],
  ])(
    "contains an exception in %s once, without the exception's message",
    async (path, name, hasFrames) => {
      const response = await call(path);
      const error = await errorOf(response);
      expect(error).toMatchObject({ type: "api_error", code: null });
      expect(JSON.stringify(error) + lines.join()).not.toContain(SECRET);
      const exceptions = logged().filter(({ event }) => event === "exception");
      const request_id = response.headers.get("x-request-id");
      expect(exceptions).toMatchObject([{ event: "exception", name, request_id }]);
      expect(JSON.stringify(exceptions[0]?.["stack"]).includes("sample-app")).toBe(hasFrames);
    },
  );
});
