import { describe, expect, it } from "vitest";
import { ADMIN_TOKEN, send } from "./client.ts";
import { upstreamBindings } from "./upstream.ts";

async function aliases(bindings?: Env): Promise<unknown> {
  const sending = { key: ADMIN_TOKEN, ...(bindings && { bindings }) };
  const response = await send("/admin/v1/health", sending);
  expect(response.status).toBe(200);
  return (await response.json<{ aliases: unknown }>()).aliases;
}

describe("GET /admin/v1/health: 200", () => {
  it("says which model each alias means here, by its concrete id", async () => {
    expect(await aliases()).toEqual({
      smart: "sandbox/echo",
      fast: "sandbox/echo",
      cheap: "sandbox/echo",
      "embeddings/cheapest": "sandbox/embed",
    });
  });

  it("no route is left out by an isolate that has asked none", async () => {
    const response = await send("/admin/v1/health", {
      key: ADMIN_TOKEN,
      bindings: upstreamBindings(),
    });
    expect(await response.json()).toMatchObject({ breakers: [] });
  });

  it("a pin is in it, and an alias that means no live model is not", async () => {
    const pinned = { mine: "mock/blind", smart: "openai/gpt-4o" };
    const said = await aliases(upstreamBindings({ ALIASES: JSON.stringify(pinned) }));
    expect(said).toHaveProperty("mine", "mock/blind");
    expect(said).not.toHaveProperty("smart");
  });
});
