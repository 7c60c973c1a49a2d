import { beforeAll, describe, expect, it } from "vitest";
import { admin, errorOf, openAccount, send } from "./client.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

describe("an unknown path", () => {
  it.each([
    ["GET", "/"],
    ["GET", "/favicon.ico"],
    ["POST", "/chat/completions"],
    ["GET", "/models"],
    ["POST", "/v2/chat/completions"],
    ["GET", "/V1/models"],
  ])("returns a 404 that points to /v1: %s %s", async (method, path) => {
    const error = await errorOf(await send(path, { method }), 404);
    expect(error).toMatchObject({ type: "invalid_request_error", param: null, code: null });
    expect(error.message).toContain("/v1");
  });

  it.each([
    ["GET", "/v1"],
    ["GET", "/v1/"],
    ["GET", "/v1/nothing"],
    ["POST", "/v1/chat"],
    ["POST", "/v1/chat/completions/x"],
    ["GET", "/v1/balance/x"],
  ])("returns a 404 in JSON for a request with a key: %s %s", async (method, path) => {
    const error = await errorOf(await send(path, { method, key }), 404);
    expect(error.type).toBe("invalid_request_error");
  });

  it.each([
    ["/v1/responses/compact", "not supported"],
    ["/v1//responses/resp_1/cancel", "not supported"],
  ])("returns a 404 with a hint: %s is %s", async (path, hint) => {
    for (const method of ["POST", "GET", "DELETE"]) {
      const error = await errorOf(await send(path, { method, key }), 404);
      expect(error.message).toContain(hint);
    }
  });

  it("hides the internal API between regions behind the 404 of an unknown path", async () => {
    for (const path of ["authorize", "lookup", "outcomes", "revocations", "forward"]) {
      const body = { v: 1, items: [] };
      const error = await errorOf(await send(`/internal/v1/${path}`, { key, body }), 404);
      const nowhere = await errorOf(await send(`/internal/v1/nowhere`, { key, body }), 404);
      expect(error.message.replace(path, "")).toBe(nowhere.message.replace("nowhere", ""));
    }
  });

  it("returns 404 for an unknown path below /admin/v1 with the operator's token", async () => {
    for (const path of ["", "/", "/nothing", "/orgs/x/nothing"]) {
      const error = await errorOf(await admin("GET", path), 404);
      expect(error.type).toBe("invalid_request_error");
    }
  });

  it("returns a short 404 for a path of any length", async () => {
    const error = await errorOf(await send(`/v1/${"x".repeat(10_000)}`, { key }), 404);
    expect(error.message.length).toBeLessThanOrEqual(220);
  });
});

describe("a request to an unknown path without a key", () => {
  it("returns the 401 that existing paths return, below /v1 and /admin/v1", async () => {
    const bodies = new Set<string>();
    for (const path of ["/v1", "/v1/nothing", "/v1/keys", "/v1/responses", "/admin/v1/nothing"]) {
      const response = await send(path);
      expect(response.status).toBe(401);
      bodies.add(await response.text());
    }
    expect(bodies.size).toBe(1);
  });
});

describe("a malformed path", () => {
  it.each(["/v1/models/%", "/v1/models/%zz", "/v1/models/%C3%28", "/%ff"])(
    "returns 400 for %s",
    async (path) => {
      const error = await errorOf(await send(path, { key }), 400);
      expect(error.type).toBe("invalid_request_error");
    },
  );
});
