import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { effortFor } from "../effort.ts";
import { chat, errorOf, HELLO, openAccount, send } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { FreshAccounts } from "./fresh-accounts.ts";
import { upstreamBindings, upstreamCompletion, UPSTREAM_VARS } from "./upstream.ts";

const IDS = ["alpha", "beta", "gamma", "delta"] as const;
type Id = (typeof IDS)[number];

const MODELS = JSON.stringify([
  ...(JSON.parse(UPSTREAM_VARS.MODELS) as object[]),
  {
    id: "many/chat",
    kind: "chat",
    context: 128_000,
    max_output: 4096,
    price: { input: 1_000_000, output: 2_000_000 },
    routes: IDS.map((provider) => ({ provider, upstream_id: "chat" })),
  },
]);
const PROVIDERS = JSON.stringify([
  ...(JSON.parse(UPSTREAM_VARS.PROVIDERS) as object[]),
  ...IDS.map((id) => {
    const base_url = `https://${id}.upstream.test/v1`;
    return { id, base_url, profile: "generic", secret: "MOCK_API_KEY", regions: ["eu"] };
  }),
]);

/** Returns four providers, some of which fail. `calls` lists the called ones in order. */
function mockProviders(failing: readonly Id[] = []): {
  readonly calls: Id[];
  readonly bindings: Env;
} {
  const calls: Id[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const { hostname } = new URL(new Request(input, init).url);
    const id = IDS.find((one) => hostname === `${one}.upstream.test`);
    if (id === undefined) return new Response("", { status: 503 });
    calls.push(id);
    return failing.includes(id) ? new Response("{}", { status: 500 }) : upstreamCompletion();
  });
  return { calls, bindings: upstreamBindings({ PROVIDERS, MODELS }) };
}

let key: string;
let orgId: string;
beforeAll(async () => {
  ({ key, orgId } = await openAccount());
});

const SAY = { model: "many/chat", messages: HELLO, max_tokens: 20 };

async function callsOf(fields: object, failing: readonly Id[] = []): Promise<readonly Id[]> {
  const { calls, bindings } = mockProviders(failing);
  const response = await chat(key, { ...SAY, ...fields }, { bindings });
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  return calls;
}

describe("a provider preference of a request", () => {
  it.each<[string, object, Id]>([
    ["order", { provider: { order: ["gamma", "beta"] } }, "gamma"],
    ["only", { provider: { only: ["delta"] } }, "delta"],
    ["ignore", { provider: { ignore: ["alpha"] } }, "beta"],
    ["no list", { provider: { allow_fallbacks: false } }, "alpha"],
    ["a null provider", { provider: null }, "alpha"],
    ["Vercel's options", { providerOptions: { gateway: { order: ["delta"] } } }, "delta"],
    ["the suffix :floor", { model: "many/chat:floor" }, "alpha"],
    ["the suffix :nitro", { model: "many/chat:nitro" }, "alpha"],
  ])("selects the provider by %s", async (_, fields, first) => {
    expect(await callsOf(fields)).toEqual([first]);
  });

  it.each([
    ["/v1/completions", { model: "many/chat", prompt: "Hi", max_tokens: 9 }],
    ["/v1/responses", { model: "many/chat", input: "Hi", max_output_tokens: 20 }],
    ["/v1/messages", { model: "many/chat", messages: HELLO, max_tokens: 20 }],
  ])("selects a provider at the endpoint %s", async (path, body) => {
    const { calls, bindings } = mockProviders();
    const sent = { ...body, provider: { only: ["gamma"] } };
    const response = await send(path, { key, body: sent, bindings });
    expect([response.status, response.headers.get("x-dropped"), calls]).toEqual([
      200,
      null,
      ["gamma"],
    ]);
  });

  it("excludes providers from all attempts, or sets the order of the other providers", async () => {
    const some = fc.subarray([...IDS]);
    const mixed = fc.shuffledSubarray([...IDS]);
    const preferences = fc.record({
      order: fc.option(mixed),
      only: fc.option(some),
      ignore: fc.option(some),
      allow_fallbacks: fc.option(fc.boolean()),
    });
    const accounts = new FreshAccounts();
    const property = fc.asyncProperty(preferences, some, async (provider, failing) => {
      const { calls, bindings } = mockProviders(failing);
      const response = await chat((await accounts.next()).key, { ...SAY, provider }, { bindings });
      await response.text();
      const order = provider.order ?? [];
      const allowed = IDS.filter(
        (id) =>
          (provider.only?.includes(id) ?? true) &&
          provider.ignore?.includes(id) !== true &&
          (provider.allow_fallbacks !== false || order.length === 0 || order.includes(id)),
      );
      const preferred = [
        ...order.filter((id) => allowed.includes(id)),
        ...allowed.filter((id) => !order.includes(id)),
      ];
      const isAlone = provider.allow_fallbacks === false && order.length === 0;
      const candidates = isAlone ? preferred.slice(0, 1) : preferred;
      // A failed route can be retried once if no other is left.
      expect([...new Set(calls)]).toEqual(candidates.slice(0, new Set(calls).size));
      expect(response.status).toBe(
        candidates.length === 0 ? 400 : expectedStatus(candidates, failing),
      );
    });
    await fc.assert(property, { numRuns: effortFor(30, 1000) });
  });

  it.each<[object, string]>([
    [{ provider: { order: ["nobody"] } }, "provider.order[0]"],
    [{ provider: { only: ["alpha", "nobody"] } }, "provider.only[1]"],
    [{ provider: { ignore: ["nobody"] } }, "provider.ignore[0]"],
    [{ provider: { only: ["mock"] } }, "provider.only"],
    [{ provider: { only: [] } }, "provider.only"],
    [{ provider: { ignore: [...IDS] } }, "provider.ignore"],
    [{ provider: { max_price: { prompt: 0.5 } } }, "provider.max_price"],
    [{ provider: { max_price: { completion: "1.9" } } }, "provider.max_price"],
    [{ provider: { max_price: { prompt: -1 } } }, "provider.max_price.prompt"],
    [{ provider: { sort: "exacto" } }, "provider.sort"],
    [{ provider: { zdr: true } }, "provider.zdr"],
    [{ provider: { data_collection: "deny" } }, "provider.data_collection"],
    [{ provider: { quantizations: ["fp8"] } }, "provider.quantizations"],
    [{ provider: { sorted: "price" } }, "provider"],
    [{ providerOptions: { gateway: { only: ["nobody"] } } }, "providerOptions.gateway.only[0]"],
    [{ providerOptions: { gateway: { zeroDataRetention: true } } }, "providerOptions.gateway"],
  ])("causes a 400 with the param for %j", async (fields, param) => {
    const { calls, bindings } = mockProviders();
    const response = await chat(key, { ...SAY, ...fields }, { bindings });
    expect((await errorOf(response, 400)).param).toBe(param);
    expect(calls).toEqual([]);
  });

  it("accepts max_price as a number or a text, and accepts OpenRouter's provider names", async () => {
    const max_price = { prompt: 1, completion: "2", request: 0 };
    expect(await callsOf({ provider: { max_price } })).toEqual(["alpha"]);
    expect(await callsOf({ provider: { ignore: ["Amazon-Bedrock"] } })).toEqual(["alpha"]);
  });

  it("appears in x-dropped if the gateway doesn't support the preference", async () => {
    const { bindings } = mockProviders();
    const provider = { preferred_max_latency: 2, sort: { by: "latency", partition: "model" } };
    const response = await chat(key, { ...SAY, provider }, { bindings });
    expect(response.headers.get("x-dropped")).toBe("provider.preferred_max_latency");
  });

  it("skips routes that would drop a field if require_parameters is set", async () => {
    const { calls, bindings } = mockProviders();
    const named = JSON.parse(PROVIDERS) as { id: string; profile: string }[];
    const able = named.map((one) =>
      Object.assign(one, one.id !== "gamma" && { profile: "openai" }),
    );
    const varied = { ...bindings, PROVIDERS: JSON.stringify(able) };
    const provider = { require_parameters: true };
    const fields = { ...SAY, provider, min_p: 0.1 };
    const response = await chat(key, fields, { bindings: varied });
    expect([response.status, response.headers.get("x-dropped"), calls]).toEqual([
      200,
      null,
      ["gamma"],
    ]);
  });

  it("causes a 400 if require_parameters is set and every route would drop a field", async () => {
    const { calls, bindings } = mockProviders();
    const provider = { require_parameters: true };
    const fields = { ...SAY, provider, top_k: 4, prompt_cache_retention: "24h" };
    const response = await chat(key, fields, { bindings });
    expect((await errorOf(response, 400)).param).toBe("provider.require_parameters");
    expect(calls).toEqual([]);
    expect(await callsOf({ provider, temperature: 1 })).toEqual(["alpha"]);
  });
});

/** Returns the object calls, statements and wallet rows of a request. */
async function workOf(fields: object) {
  const { bindings } = mockProviders();
  const counted = countedBindings();
  const { PROVIDERS: providers, MODELS: models, MOCK_API_KEY } = bindings as Env & Vars;
  const vars = { PROVIDERS: providers, MODELS: models, MOCK_API_KEY };
  const both = { ...counted.bindings, ...vars };
  const sendRequest = () => chat(key, { ...SAY, ...fields }, { bindings: both });
  await (await sendRequest()).text(); // the isolate has cached the key and the prices
  await settled();
  const before = await rowsOf();
  Object.assign(counted, { objects: 0, statements: 0 });
  expect((await sendRequest()).status).toBe(200);
  await settled();
  const rows = (await rowsOf()) - before;
  return { objects: counted.objects, statements: counted.statements, rows };
}

type Vars = Readonly<Record<"PROVIDERS" | "MODELS" | "MOCK_API_KEY", string>>;

const settled = () => scheduler.wait(50);

/** Returns the number of rows in all tables of the wallet. */
function rowsOf(): Promise<number> {
  return runInDurableObject(env.WALLET.getByName(orgId), (_wallet, { storage: { sql } }) => {
    const tables = sql.exec<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
    );
    const counts = [...tables].map(({ name }) =>
      sql.exec<{ n: number }>(`SELECT count(*) AS n FROM "${name}"`).one(),
    );
    return counts.reduce((sum, { n }) => sum + n, 0);
  });
}

describe("a request without provider preferences", () => {
  it("needs two object calls and no database query, like a request with preferences", async () => {
    const plain = await workOf({});
    expect(plain).toMatchObject({ objects: 2, statements: 0 });
    const provider = { order: ["beta"], sort: "latency", max_price: { prompt: 5 } };
    expect(await workOf({ provider })).toEqual(plain);
    expect(await workOf({ models: ["mock/chat"], reasoning: { effort: "low" } })).toEqual(plain);
  });
});

function expectedStatus(candidates: readonly Id[], failing: readonly Id[]): number {
  const ATTEMPTS_MAX = 3;
  return candidates.slice(0, ATTEMPTS_MAX).some((id) => !failing.includes(id)) ? 200 : 502;
}
