import { describe, expect, it } from "vitest";
import { RELEASE } from "../../src/shared/release.ts";
import { bindingsWith, errorOf, send } from "./client.ts";

describe("GET /healthz", () => {
  it("200: the region, the release and the version, without a key", async () => {
    const response = await send("/healthz");
    expect(response.status).toBe(200);
    const body = await response.json<Record<string, unknown>>();
    expect(body).toEqual({ region: "eu", release: RELEASE, version: expect.any(String) });
    expect(body["version"]).not.toBe("");
  });

  it("200: says which region it is", async () => {
    const response = await send("/healthz", {
      bindings: bindingsWith({ REGION: "us", PEERS: "[]" }),
    });
    expect(await response.json()).toMatchObject({ region: "us" });
  });

  it("200 for HEAD, without a body", async () => {
    const response = await send("/healthz", { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });

  it("405 with allow for everything else", async () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      const response = await send("/healthz", { method });
      expect([method, response.headers.get("allow")]).toEqual([method, "GET, HEAD"]);
      await errorOf(response, 405);
    }
  });
});
