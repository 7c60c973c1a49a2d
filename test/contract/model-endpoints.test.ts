import { beforeAll, describe, expect, it } from "vitest";
import { modelEndpoints } from "../../scripts/openapi/model-records.ts";
import { addKey, ADMIN_TOKEN, bindingsWith, errorOf, HELLO, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { separateIsolate } from "./metrics-client.ts";
import { upstreamBindings } from "./upstream.ts";

let accounts: readonly Account[];
beforeAll(async () => {
  accounts = await Promise.all([openAccount(), openAccount(), openAccount()]);
});

const PATH = "/v1/models/sandbox/echo/endpoints";
const SAY = { model: "sandbox/echo", messages: HELLO, stream: true };

/**
 * Sends 8 streams for each account in a separate region. Returns a function that reads the region's
 * speeds.
 */
async function measured(by: readonly Account[]) {
  const name = crypto.randomUUID();
  const { ask, batches } = separateIsolate(name);
  for (const { key } of by) {
    for (let n = 0; n < 8; n++) await ask("/v1/chat/completions", key, SAY);
  }
  const { bindings } = separateIsolate(name); // another isolate, which has measured nothing itself
  const key = by[0]?.key ?? "";
  const endpoints = async () => {
    const response = await send(PATH, { key, bindings });
    expect(response.status).toBe(200);
    return modelEndpoints.parse(await response.json()).data.endpoints;
  };
  const catalog = async () => {
    const response = await send("/admin/v1/catalog", { key: ADMIN_TOKEN, bindings });
    type Route = { latency_ms: { requests: number; organizations: number } | null };
    const { models } = await response.json<{ models: { id: string; routes: Route[] }[] }>();
    return models.find(({ id }) => id === "sandbox/echo")?.routes[0]?.latency_ms;
  };
  return { endpoints, catalog, batches };
}

describe("GET /v1/models/{id}/endpoints", () => {
  it("returns latency measurements from all isolates of the region, without an extra call", async () => {
    const { endpoints, catalog, batches } = await measured(accounts);
    const percentiles = { p50: expect.any(Number) as number, p99: expect.any(Number) as number };
    expect(await endpoints()).toMatchObject([
      { tag: "sandbox", latency_last_30m: percentiles, uptime_last_30m: null },
    ]);
    expect(await catalog()).toMatchObject({ ...percentiles, requests: 24, organizations: 3 });
    expect(batches()).toBeLessThanOrEqual(24);
  });

  it("shows speeds to customers only if 3 organizations contributed measurements, and always to operators", async () => {
    const { endpoints, catalog } = await measured([
      ...accounts.slice(0, 2),
      ...accounts.slice(0, 1),
    ]);
    expect(await endpoints()).toMatchObject([
      { latency_last_30m: null, throughput_last_30m: null },
    ]);
    expect(await catalog()).toMatchObject({ organizations: 2 });
  });

  it("omits speeds if the region's measurements can't be read", async () => {
    const lost = { speeds: () => Promise.reject(new Error("no such call")) };
    const bindings = bindingsWith({ REGION_METRICS: { getByName: () => lost } });
    const [{ key } = { key: "" }] = accounts;
    const { data } = await (await send(PATH, { key, bindings })).json<{ data: object }>();
    expect(data).toMatchObject({ endpoints: [{ latency_last_30m: null }] });
    const read = await send("/admin/v1/catalog", { key: ADMIN_TOKEN, bindings });
    expect(read.status).toBe(200);
  });

  it("lists the providers and prices of the model list, even for aliases and encoded slashes", async () => {
    const [{ key } = { key: "" }] = accounts;
    const bindings = upstreamBindings({ OPENAI_API_KEY: "k", RESIDENCY: "relaxed" });
    const read = async (path: string) => (await send(path, { key, bindings })).json<Read>();
    type Read = { readonly data: { endpoints: { tag: string; pricing: object }[] } };
    type Listed = { id: string; providers: string[]; pricing: object; alias_of?: string };
    const response = await send("/v1/models", { key, bindings });
    const { data } = await response.json<{ data: Listed[] }>();
    expect(data.some(({ alias_of }) => alias_of !== undefined)).toBe(true);
    for (const { id, providers, pricing } of data) {
      const { endpoints } = (await read(`/v1/models/${id}/endpoints`)).data;
      expect([id, ...new Set(endpoints.map(({ tag }) => tag))]).toEqual([id, ...providers]);
      expect(endpoints[0]?.pricing).toEqual(pricing);
    }
    const encoded = await read("/v1/models/sandbox%2Fecho/endpoints");
    expect(encoded.data.endpoints).toHaveLength(1);
  });

  it("returns 404 for an unknown model, and 403 for a model outside the key's policy", async () => {
    const [{ key, orgId, memberId } = { key: "", orgId: "", memberId: "" }] = accounts;
    const unknown = await send("/v1/models/no/such/endpoints", { key });
    expect((await errorOf(unknown, 404)).code).toBe("model_not_found");
    const limited = await addKey(orgId, memberId);
    const body = { policy: { allowed_models: ["sandbox/agent"] } };
    await send(`/v1/keys/${limited.keyId}`, { key, method: "PATCH", body });
    const denied = await send(PATH, { key: limited.key });
    expect((await errorOf(denied, 403)).code).toBe("model_not_allowed");
  });
});
