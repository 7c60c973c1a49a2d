import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { runHourlyJobs } from "../../src/operator/scheduled.ts";
import { holdOf, valueOf } from "../wallet/wallet-fixture.ts";
import { ADMIN_TOKEN, bindingsWith, openAccount, send } from "./client.ts";
import { upstreamBindings } from "./upstream.ts";

async function aliases(bindings?: Env): Promise<unknown> {
  const sending = { key: ADMIN_TOKEN, ...(bindings && { bindings }) };
  const response = await send("/admin/v1/health", sending);
  expect(response.status).toBe(200);
  return (await response.json<{ aliases: unknown }>()).aliases;
}

describe("GET /admin/v1/health", () => {
  it("returns the model that each alias stands for", async () => {
    expect(await aliases()).toEqual({
      smart: "sandbox/echo",
      fast: "sandbox/echo",
      cheap: "sandbox/echo",
      "embeddings/cheapest": "sandbox/embed",
    });
  });

  it("returns the results of the last hourly sweep: open holds, sizes and missing database rows", async () => {
    const { orgId } = await openAccount();
    const wallet = env.WALLET.getByName(orgId);
    const hold = holdOf(10);
    valueOf(await wallet.hold(hold));
    await runHourlyJobs(env);
    const response = await send("/admin/v1/health", { key: ADMIN_TOKEN });
    const { sweep } = await response.json<{ sweep: Record<string, number | string> }>();
    expect(Math.abs(Date.parse(String(sweep["at"])) - Date.now())).toBeLessThan(60_000);
    for (const name of ["holds_open", "wallet_bytes_largest", "book_bytes"]) {
      expect([name, Number(sweep[name]) > 0]).toEqual([name, true]);
    }
    expect(sweep["bytes_max"]).toBe(10_000_000_000);
    valueOf(await wallet.void(hold.id));
  });

  it("returns 200 even if the region's metrics can't be read", async () => {
    const lost = { read: () => Promise.reject(new Error("lost")) };
    const bindings = bindingsWith({ REGION_METRICS: { getByName: () => lost } });
    const response = await send("/admin/v1/health", { key: ADMIN_TOKEN, bindings });
    expect(await response.json()).toMatchObject({ sweep: null, book: true });
  });

  it("returns an empty list of routes in cooldown before the isolate's first provider call", async () => {
    const response = await send("/admin/v1/health", {
      key: ADMIN_TOKEN,
      bindings: upstreamBindings(),
    });
    expect(await response.json()).toMatchObject({ breakers: [] });
  });

  it("includes aliases of available models, but no alias of an unavailable model", async () => {
    const pinned = { mine: "mock/blind", smart: "openai/gpt-4o" };
    const modelsByAlias = await aliases(upstreamBindings({ ALIASES: JSON.stringify(pinned) }));
    expect(modelsByAlias).toHaveProperty("mine", "mock/blind");
    expect(modelsByAlias).not.toHaveProperty("smart");
  });
});
