import { describe, expect, it } from "vitest";
import { CALL_KINDS } from "../../src/shared/kinds.ts";
import type { CatalogEntry, ModelRouteEntry } from "../../src/models/catalog/entry.ts";
import { CATALOG, SANDBOX_MODELS } from "../../src/models/catalog/models.ts";
import { REGIONS } from "../../src/shared/regions.ts";
import { PROVIDERS } from "./config-fixture.ts";

const ENTRIES = [...CATALOG, ...SANDBOX_MODELS];
/** Models that their authors don't bill. */
const FREE = new Set(["openai/omni-moderation-latest", "mistral/mistral-moderation-latest"]);
const DAY = /^202[3-6]-\d\d-\d\d$/;
const routesOf = (entries: readonly CatalogEntry[]) =>
  entries.flatMap((entry) => entry.routes.map((route) => [entry.id, route] as const));

it("the catalog contains at least 40 chat and 10 embedding models, each with a unique author/model ID", () => {
  const ids = ENTRIES.map(({ id }) => id);
  expect(ids).toHaveLength(new Set(ids).size);
  for (const id of ids) expect(id).toMatch(/^[a-z0-9-]+\/[a-z0-9.-]+$/);
  const kinds = CATALOG.map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === "chat").length).toBeGreaterThanOrEqual(40);
  expect(kinds.filter((kind) => kind === "embeddings").length).toBeGreaterThanOrEqual(10);
});

describe("a model in the catalog", () => {
  it.each(ENTRIES.map((entry) => [entry.id, entry] as const))(
    "contains all required fields of a model: %s",
    (_id, entry) => {
      expect(entry.routes.length).toBeGreaterThan(0);
      expect(entry.released).toMatch(DAY);
      expect(Date.parse(entry.released)).toBeGreaterThan(0);
      const isChat = entry.kind === "chat";
      for (const tokens of [entry.context, entry.maxOutput, entry.minOutput, entry.imageTokens]) {
        expect(Number.isSafeInteger(tokens)).toBe(true);
      }
      expect(entry.context).toBeGreaterThanOrEqual(512);
      expect(entry.maxOutput > 0).toBe(isChat);
      expect(entry.maxOutput).toBeLessThanOrEqual(entry.context);
      expect(entry.minOutput).toBeGreaterThanOrEqual(1);
      expect(entry.imageTokens > 0).toBe(entry.abilities.includes("vision"));
      expect(entry.abilities.includes("dimensions") && isChat).toBe(false);
      expect(entry.estimateFactor).toBeGreaterThanOrEqual(
        entry.id.startsWith("sandbox/") ? 1 : 1.15,
      );
      expect(entry.estimateFactor).toBeLessThanOrEqual(1.65);
      const routes = entry.routes.map(({ provider, upstreamId }) => `${provider} ${upstreamId}`);
      expect(routes).toHaveLength(new Set(routes).size);
    },
  );
});

describe("a route in the catalog", () => {
  it.each(routesOf(ENTRIES))("includes a valid price, date, hosts and limits: %s", (id, route) => {
    const { kind, context, maxOutput, abilities } = entryOf(id);
    const { limits = {}, longPrompt } = route;
    for (const { price: dated } of route.prices) {
      const { input, cached, cacheWrite, output, units = {} } = dated;
      const perUnit = Object.values(units);
      expect([input, cached, cacheWrite, output, ...perUnit].every(Number.isSafeInteger)).toBe(
        true,
      );
      expect(input + Math.max(0, ...perUnit) > 0).toBe(!FREE.has(id));
      expect(CALL_KINDS[kind].units).toEqual(expect.arrayContaining(Object.keys(units)));
      expect(output > 0).toBe(kind === "chat");
      expect(cached > 0).toBe(input > 0);
      expect(cached).toBeLessThanOrEqual(input);
      expect(cacheWrite).toBeGreaterThanOrEqual(input);
    }
    expectDays(route);
    expect(["sandbox", ...PROVIDERS]).toContain(route.provider);
    expect(route.regions.length).toBeGreaterThan(0);
    expect(["global", ...REGIONS]).toEqual(expect.arrayContaining([...route.regions]));
    expect(route.regions).toHaveLength(new Set(route.regions).size);
    expect([undefined, 10]).toContain(route.uplift);
    // A regional surcharge requires a regional host.
    const isRegional = route.regions.some((region) => region !== "global");
    expect(route.uplift === undefined || isRegional).toBe(true);
    expect(longPrompt?.above ?? 0).toBeLessThan(context);
    expect(limits.context ?? 0).toBeLessThan(context);
    expect(limits.maxOutput ?? 0).toBeLessThan(maxOutput + (kind === "chat" ? 0 : 1));
    expect(abilities).toEqual(expect.arrayContaining([...(limits.lacks ?? [])]));
  });

  it("exists for every chat model without reducing the model's context, output or features", () => {
    for (const { id, routes } of ENTRIES) {
      for (const limit of ["context", "maxOutput"] as const) {
        expect([id, routes.some(({ limits }) => limits?.[limit] === undefined)]).toEqual([
          id,
          true,
        ]);
      }
      expect([id, routes.some(({ limits }) => limits?.lacks === undefined)]).toEqual([id, true]);
    }
  });

  it("uses no Bedrock inference profile that runs outside the route's region", () => {
    const bedrock = routesOf(CATALOG).filter(([, route]) => route.provider === "bedrock");
    expect(bedrock.length).toBeGreaterThan(20);
    for (const [, { upstreamId, regions }] of bedrock) {
      expect(upstreamId).not.toMatch(/^global\./);
      const [, profile] = /^(eu|us)\./.exec(upstreamId) ?? [];
      expect(regions).toEqual(profile === undefined ? regions : [profile]);
      expect(regions).not.toContain("global");
    }
  });
});

const price = (id: string, provider: string) =>
  entryOf(id)
    .routes.find((route) => route.provider === provider)
    ?.prices.at(-1)?.price;
const of = (input: number, cached: number, cacheWrite: number, output: number) => ({
  input,
  cached,
  cacheWrite,
  output,
});

it("the catalog's prices equal the providers' prices", () => {
  expect(price("openai/gpt-6-luna", "openai")).toEqual(of(100_000, 10_000, 125_000, 500_000));
  expect(price("anthropic/claude-haiku-5.5", "bedrock")).toEqual(
    of(100_000, 10_000, 125_000, 500_000),
  );
  expect(price("amazon/nova-micro", "bedrock")).toEqual(of(35_000, 8_750, 35_000, 140_000));
  expect(price("zai/glm-4.7-flash", "workers-ai")).toEqual(of(60_500, 60_500, 60_500, 400_000));
  expect(price("deepseek/deepseek-v4-pro", "deepseek")).toEqual(
    of(1_320_000, 44_000, 1_320_000, 3_960_000),
  );
  expect(price("baai/bge-m3", "workers-ai")).toEqual(of(12_000, 12_000, 12_000, 0));
});

function expectDays({ prices, until }: ModelRouteEntry): void {
  for (const day of [
    ...prices.flatMap(({ from, seenOn }) => [from, seenOn]),
    until ?? "2026-11-22",
  ]) {
    expect(new Date(day).toISOString().slice(0, 10)).toBe(day);
  }
  for (const { seenOn } of prices) expect(seenOn).toMatch(DAY);
  const days = prices.map(({ from }) => from);
  expect(days.toSorted()).toEqual([...new Set(days)]);
  expect((until ?? "9999") > (days.at(-1) ?? "")).toBe(true);
}

function entryOf(id: string): CatalogEntry {
  const entry = ENTRIES.find((one) => one.id === id);
  if (entry === undefined) throw new Error(`no model ${id}`);
  return entry;
}
