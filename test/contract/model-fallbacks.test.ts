import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { SkippedRoute } from "../../src/shared/generation.ts";
import { effortFor } from "../effort.ts";
import { addKey, chat, errorOf, HELLO, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { FreshAccounts } from "./fresh-accounts.ts";
import { upstreamBindings, upstreamCompletion, UPSTREAM_VARS } from "./upstream.ts";

const PROVIDER_IDS = ["alpha", "beta", "gamma", "delta", "epsilon"] as const;
type Id = (typeof PROVIDER_IDS)[number];
type Row = { readonly price: number; readonly routes: readonly Id[]; readonly blind?: true };

/** Models with prices in dollars per million tokens. Output costs twice as much as input. */
const SOLD: Readonly<Record<string, Row>> = {
  "m/one": { price: 1, routes: ["alpha", "beta"], blind: true },
  "m/two": { price: 5, routes: ["gamma", "alpha"] },
  "m/three": { price: 2, routes: ["delta", "epsilon"] },
};
const NAMES = Object.keys(SOLD);
const MODELS = JSON.stringify([
  ...(JSON.parse(UPSTREAM_VARS.MODELS) as object[]),
  ...Object.entries(SOLD).map(([id, { price, routes, blind }]) => ({
    id,
    kind: "chat",
    context: 128_000,
    max_output: 4096,
    abilities: blind === true ? ["tools"] : ["tools", "vision"],
    price: { input: price * 1_000_000, output: price * 2_000_000 },
    routes: routes.map((provider) => ({ provider, upstream_id: id.slice(2) })),
  })),
]);
const PROVIDERS = JSON.stringify([
  ...(JSON.parse(UPSTREAM_VARS.PROVIDERS) as object[]),
  ...PROVIDER_IDS.map((id) => {
    const base_url = `https://${id}.upstream.test/v1`;
    return { id, base_url, profile: "generic", secret: "MOCK_API_KEY", regions: ["eu"] };
  }),
]);

const USED = { prompt_tokens: 9, completion_tokens: 20, total_tokens: 29 };

type Called = { readonly provider: Id; readonly model: string; readonly granted: number };

/**
 * Returns providers, some of which fail with a status. `calls` lists the calls with the amount held
 * during each.
 */
function mockProviders(failing: Readonly<Partial<Record<Id, number>>> = {}) {
  const calls: Called[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const provider = PROVIDER_IDS.find((id) => request.url.includes(`${id}.upstream.test`));
    if (provider === undefined) return new Response("", { status: 503 });
    const { model } = await request.json<{ model: string }>();
    const open = await env.WALLET.getByName(account.orgId).holds({
      limit: 100,
      after: null,
      keyIds: null,
    });
    const granted = open.ok ? open.value.holds.reduce((sum, one) => sum + one.grantedMicro, 0) : 0;
    calls.push({ provider, model: `m/${model}`, granted });
    const status = failing[provider];
    if (status === undefined) return upstreamCompletion(USED);
    return Response.json({ error: { message: "The content is not allowed." } }, { status });
  });
  return { calls, bindings: upstreamBindings({ PROVIDERS, MODELS }) };
}

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

const SEEN = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
const SAY = { model: "m/one", messages: HELLO, max_tokens: 20 };
const namesOf = (calls: readonly Called[]) =>
  calls.map(({ provider, model }) => `${provider} ${model}`);

async function receiptOf(response: Response): Promise<Record<string, unknown>> {
  const id = response.headers.get("x-request-id") ?? "";
  return (await send(`/v1/generations/${id}`, { key: account.key })).json();
}

async function keyWithBudget(budget: number): Promise<string> {
  const body = { name: "small", budget_dollars: budget / 1_000_000, rpm_limit: 1000 };
  const response = await send("/v1/keys", { key: account.key, body });
  expect(response.status).toBe(201);
  return (await response.json<{ key: string }>()).key;
}

type Remaining = { readonly name: string; readonly most: number };

/** Returns a model's routes that preferences allow, with a lower bound of their maximum cost. */
function remaining(
  model: string,
  prefs: {
    readonly only: readonly Id[] | null;
    readonly ignore: readonly Id[];
    readonly prompt: number | null;
  },
): Remaining[] {
  const { price, routes } = SOLD[model] ?? { price: 0, routes: [] };
  const isDear = prefs.prompt !== null && price > prefs.prompt;
  return routes
    .filter((id) => !isDear && (prefs.only?.includes(id) ?? true) && !prefs.ignore.includes(id))
    .map((id) => ({ name: `${id} ${model}`, most: USED.prompt_tokens * price + 40 * price }));
}

/** Checks that the hold covers each call within the budget, or all routes without a budget. */
function expectHeld(
  calls: readonly Called[],
  { routes, budget }: { readonly routes: readonly Remaining[]; readonly budget: number | null },
): void {
  for (const { granted, provider, model } of calls) {
    const own = routes.filter(({ name }) => budget === null || name === `${provider} ${model}`);
    expect(granted).toBeGreaterThanOrEqual(Math.max(...own.map(({ most }) => most)));
    expect(granted).toBeLessThanOrEqual(budget ?? granted);
  }
}

type Seen = { readonly sizes: Set<number>; dropped: number; rising: number };

/**
 * Counts a case with calls by whether a budget drops routes, and whether the first one costs less
 * than another.
 */
function count(seen: Seen, routes: readonly Remaining[], budget: number | null): void {
  const dearest = Math.max(0, ...routes.map(({ most }) => most));
  seen.sizes.add(routes.length);
  if (dearest > (budget ?? Infinity)) seen.dropped++;
  if (budget === null && dearest > (routes[0]?.most ?? 0)) seen.rising++;
}

describe("a request with several models", () => {
  it("calls the next model after a failure, and returns the name of the responding model", async () => {
    const { calls, bindings } = mockProviders({ alpha: 500, beta: 503 });
    const fields = { ...SAY, models: ["m/two:floor", "m/three"] };
    const response = await chat(account.key, fields, { bindings });
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { model: "m/two", usage: { cost_micro: 9 * 5 + 20 * 10 } },
    ]);
    expect(response.headers.get("x-route")).toContain("gamma");
    expect(namesOf(calls)).toEqual(["alpha m/one", "beta m/one", "gamma m/two"]);
    expect(await receiptOf(response)).toMatchObject({
      model: "m/two",
      provider: "gamma",
      cost_micro: 245,
      failed_attempts: [
        { route: "alpha:one", why: "500" },
        { route: "beta:one", why: "overloaded" },
      ],
    });
  });

  it("calls the next model instead of the next provider if a provider rejects the request", async () => {
    const { calls, bindings } = mockProviders({ alpha: 400 });
    const response = await chat(account.key, { ...SAY, models: ["m/three"] }, { bindings });
    expect([response.status, await response.json()]).toMatchObject([200, { model: "m/three" }]);
    expect(namesOf(calls)).toEqual(["alpha m/one", "delta m/three"]);
  });

  it("returns the last model's error if all models reject the request", async () => {
    const { calls, bindings } = mockProviders({ alpha: 400, delta: 422 });
    const response = await chat(account.key, { ...SAY, models: ["m/three"] }, { bindings });
    expect((await errorOf(response, 400)).message).toContain("not allowed");
    expect(namesOf(calls)).toEqual(["alpha m/one", "delta m/three"]);
  });

  it("streams the name of the model that responds", async () => {
    const { bindings } = mockProviders({ alpha: 500, beta: 500 });
    const fields = { ...SAY, models: ["m/two"], stream: true };
    const text = await (await chat(account.key, fields, { bindings })).text();
    expect(text).toContain('"model":"m/two"');
    expect(text).not.toContain('"model":"m/one"');
  });

  it.each<[string, object, string]>([
    ["no model", { model: undefined, models: ["m/three", "m/one"] }, "delta m/three"],
    ["a repeated model", { models: ["m/one", "m/one"] }, "alpha m/one"],
    ["OpenRouter's legacy route field", { models: ["m/two"], route: "fallback" }, "alpha m/one"],
    ["a null list", { models: null }, "alpha m/one"],
    [
      "a provider of the second model only",
      { models: ["m/two"], provider: { only: ["gamma"] } },
      "gamma m/two",
    ],
    [
      "a maximum price below the first model",
      { model: "m/two", models: ["m/one"], provider: { max_price: { prompt: 1 } } },
      "alpha m/one",
    ],
    [
      "an image that the first model doesn't accept",
      {
        models: ["m/three"],
        messages: [{ role: "user", content: [SEEN] }],
      },
      "delta m/three",
    ],
  ])("starts with the first suitable model for a request with %s", async (_, fields, first) => {
    const { calls, bindings } = mockProviders();
    const response = await chat(account.key, { ...SAY, ...fields }, { bindings });
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    expect(namesOf(calls)).toEqual([first]);
  });

  it.each([
    ["/v1/completions", { prompt: "Hi", max_tokens: 9 }],
    ["/v1/responses", { input: "Hi", max_output_tokens: 20 }],
    ["/v1/messages", { messages: HELLO, max_tokens: 20 }],
    ["/v1/chat/completions", { messages: HELLO, max_tokens: 20 }],
  ])(
    "succeeds at %s, also with fallback models in the format of Vercel's AI Gateway",
    async (path, body) => {
      const { calls, bindings } = mockProviders({ alpha: 500, beta: 500 });
      for (const fields of [
        { models: ["m/three"] },
        { providerOptions: { gateway: { models: ["m/three"] } } },
      ]) {
        const sent = { ...body, model: "m/one", ...fields };
        const response = await send(path, { key: account.key, body: sent, bindings });
        expect([response.status, await response.json()]).toMatchObject([200, { model: "m/three" }]);
        expect(namesOf(calls.splice(0)).at(-1)).toBe("delta m/three");
      }
    },
  );

  it.each<[string, object, string]>([
    ["/v1/chat/completions", { ...SAY, models: ["m/two", "nothing"] }, "models[1]"],
    ["/v1/chat/completions", { ...SAY, models: ["mock/embed"] }, "models[0]"],
    ["/v1/chat/completions", { ...SAY, models: [""] }, "models[0]"],
    ["/v1/chat/completions", { ...SAY, models: Array(9).fill("m/two") }, "models"],
    ["/v1/chat/completions", { ...SAY, route: "random" }, "route"],
    [
      "/v1/messages",
      { ...SAY, providerOptions: { gateway: { models: ["nothing"] } } },
      "providerOptions.gateway.models[0]",
    ],
    ["/v1/embeddings", { model: "mock/embed", input: "Hi", models: ["mock/embed"] }, "models"],
  ])("returns 400 at %s for %j", async (path, body, param) => {
    const { calls, bindings } = mockProviders();
    const response = await send(path, { key: account.key, body, bindings });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: path === "/v1/messages" ? {} : { param } },
    ]);
    expect(calls).toEqual([]);
  });

  it.each<[string, object, string]>([
    ["models", { allowed_models: ["m/three"] }, "delta m/three"],
    ["policy", { policy: { allowed_models: ["m/two"] } }, "gamma m/two"],
    ["policy", { policy: { allowed_providers: ["epsilon", "alpha"] } }, "alpha m/one"],
  ])("calls only routes that the key's %s allows: %j", async (...row) => {
    const [, terms, first] = row;
    const { keyId, key } = await addKey(account.orgId, account.memberId);
    const path = `/v1/keys/${keyId}`;
    const { calls, bindings } = mockProviders();
    const patch = { key: account.key, method: "PATCH", body: terms, bindings };
    const patched = await send(path, patch);
    expect([patched.status, await patched.text()]).toEqual([200, expect.any(String)]);
    const fields = { ...SAY, models: ["m/two", "m/three"] };
    const response = await chat(key, fields, { bindings });
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    expect(namesOf(calls)).toEqual([first]);
    const none = { ...SAY, models: ["m/one"], provider: { only: ["beta"] } };
    expect((await chat(key, none, { bindings })).status).toBe(403);
    expect(calls).toHaveLength(1);
  });

  it("skips fallback models that cost more than the key's remaining budget", async () => {
    const { calls, bindings } = mockProviders({ alpha: 500, beta: 500 });
    const key = await keyWithBudget(150);
    const fields = { ...SAY, models: ["m/two", "m/one"] };
    const response = await chat(key, fields, { bindings });
    expect([response.status, await response.text()]).toEqual([502, expect.any(String)]);
    expect(namesOf(calls)).not.toContain("gamma m/two");
    expect(calls.length).toBeGreaterThan(1);
    const first = await chat(key, { ...fields, model: "m/two" }, { bindings });
    expect((await errorOf(first, 402)).code).toBe("key_budget_exceeded");
  });

  it("calls only allowed providers within max_price, and holds enough for each provider", async () => {
    const some = fc.subarray([...PROVIDER_IDS]);
    // All models have different prices, so two of them reveal a hold for only the first one.
    const cases = fc.record({
      models: fc.shuffledSubarray(NAMES, { minLength: 2 }),
      only: fc.option(some, { freq: 1 }),
      ignore: some,
      prompt: fc.option(fc.constantFrom(1, 2, 5), { freq: 1 }),
      budget: fc.option(fc.integer({ min: 20, max: 400 }), { freq: 1 }),
      failing: some,
      status: fc.constantFrom(400, 500, 503),
    });
    const accounts = new FreshAccounts();
    const seen = { sizes: new Set<number>(), dropped: 0, rising: 0 };
    const property = fc.asyncProperty(cases, async ({ models, only, ignore, prompt, ...rest }) => {
      const { budget } = rest;
      account = await accounts.next();
      const key = budget === null ? account.key : await keyWithBudget(budget);
      const { calls, bindings } = mockProviders(
        Object.fromEntries(rest.failing.map((id) => [id, rest.status])),
      );
      const max_price = prompt === null ? null : { prompt };
      const fields = { model: undefined, models, provider: { only, ignore, max_price } };
      const response = await chat(key, { ...SAY, ...fields }, { bindings });
      const body = await response.json<{ model?: string; usage?: { cost_micro: number } }>();
      const routes = models.flatMap((model) => remaining(model, { only, ignore, prompt }));
      const allowed = routes.map(({ name }) => name);
      const called = [...new Set(namesOf(calls))];
      expect(allowed).toEqual(expect.arrayContaining(called));
      // Routes are called in order, except those that a rejection of their model skips.
      expect(called).toEqual(allowed.filter((name) => called.includes(name)));
      if (calls.length > 0) count(seen, routes, budget);
      expectHeld(calls, { routes, budget });
      if (response.status !== 200) return;
      const { price = 0 } = SOLD[body.model ?? ""] ?? {};
      const cost = USED.prompt_tokens * price + USED.completion_tokens * price * 2;
      expect(body.usage?.cost_micro).toBe(cost);
      expect(price).toBeLessThanOrEqual(prompt ?? price);
    });
    const models = ["m/one", "m/two"];
    const failing: Id[] = ["alpha", "beta"];
    const open = { models, only: null, ignore: [], prompt: null, status: 500 as const };
    const withBudget = { ...open, budget: 150, failing };
    const withoutBudget = { ...open, budget: null, failing };
    const examples: [typeof withBudget | typeof withoutBudget][] = [[withBudget], [withoutBudget]];
    await fc.assert(property, { numRuns: effortFor(30, 1000), examples });
    expect(seen.sizes.size).toBeGreaterThan(3);
    expect(seen.dropped).toBeGreaterThan(0);
    expect(seen.rising).toBeGreaterThan(0);
  });
});

async function skippedBy(key: string, fields: object) {
  const { bindings } = mockProviders();
  const response = await chat(key, { ...SAY, ...fields }, { bindings });
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  const id = response.headers.get("x-request-id") ?? "";
  const data = await send(`/v1/generation?id=${id}`, { key: account.key });
  const { skipped } = await receiptOf(response);
  expect(await data.json()).toMatchObject({ data: { skipped } });
  return (skipped as readonly SkippedRoute[]).map(({ route, why }) => `${route} ${why}`);
}

describe("the list of skipped routes in a receipt", () => {
  it.each<[object, string[]]>([
    [{}, []],
    [{ provider: { only: ["alpha"] } }, ["beta:one preference"]],
    [{ provider: { allow_fallbacks: false } }, ["beta:one preference"]],
    [
      { models: ["m/two"], provider: { ignore: ["alpha", "beta"] } },
      ["alpha:two preference", "alpha:one preference", "beta:one preference"],
    ],
    [
      { models: ["m/two"], provider: { max_price: { prompt: 1 } } },
      ["gamma:two max_price", "alpha:two max_price"],
    ],
    [
      { models: ["m/two"], provider: { ignore: ["gamma"], max_price: { prompt: 1 } } },
      ["gamma:two preference", "alpha:two max_price"],
    ],
    [
      { models: ["m/two"], messages: [{ role: "user", content: [SEEN] }] },
      ["alpha:one parameter", "beta:one parameter"],
    ],
  ])("contains the routes that the request fields %j exclude", async (fields, expected) => {
    expect(await skippedBy(account.key, fields)).toEqual(expected);
  });

  it("appears in receipts of failed requests as well", async () => {
    const { bindings } = mockProviders({ alpha: 500 });
    const provider = { only: ["alpha"] };
    const response = await chat(account.key, { ...SAY, provider }, { bindings });
    expect(response.status).toBe(502);
    const skipped = [{ route: "beta:one", why: "preference" }];
    const id = response.headers.get("x-request-id") ?? "";
    // The same isolate reads the receipt, and reports its failures first.
    const receipt = await send(`/v1/generations/${id}`, { key: account.key, bindings });
    expect(await receipt.json()).toMatchObject({ status: "voided", skipped });
    const data = await send(`/v1/generation?id=${id}`, { key: account.key, bindings });
    expect(await data.json()).toMatchObject({ data: { skipped } });
  });

  it("gives the reason 'policy' for a route that a policy excludes", async () => {
    const { keyId, key } = await addKey(account.orgId, account.memberId);
    const body = { policy: { allowed_providers: ["beta"] } };
    const { bindings } = mockProviders();
    await send(`/v1/keys/${keyId}`, { key: account.key, method: "PATCH", body, bindings });
    expect(await skippedBy(key, {})).toEqual(["alpha:one policy"]);
  });

  it("gives the reason 'limit' for a fallback model that exceeds a limit", async () => {
    const skipped = await skippedBy(await keyWithBudget(150), { models: ["m/two"] });
    expect(skipped).toEqual(["gamma:two limit", "alpha:two limit"]);
  });
});
