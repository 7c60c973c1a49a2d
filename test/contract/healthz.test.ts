import { describe, expect, it } from "vitest";
import { RELEASE } from "../../src/shared/release.ts";
import { bindingsWith, errorOf, send } from "./client.ts";

describe("GET /healthz", () => {
  it("returns region, release and version without a key", async () => {
    const response = await send("/healthz");
    expect(response.status).toBe(200);
    const body = await response.json<Record<string, unknown>>();
    expect(body).toEqual({ region: "eu", release: RELEASE, version: expect.any(String) });
    expect(body["version"]).not.toBe("");
  });

  it("returns the region of the Worker that receives the request", async () => {
    const response = await send("/healthz", {
      bindings: bindingsWith({ REGION: "us", PEERS: "[]" }),
    });
    expect(await response.json()).toMatchObject({ region: "us" });
  });

  it("returns 405 with an allow header for other methods", async () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      const response = await send("/healthz", { method });
      expect([method, response.headers.get("allow")]).toEqual([method, "GET, HEAD"]);
      await errorOf(response, 405);
    }
  });
});
