import { NO_PRICE_LISTS } from "../../src/models/catalog/price-lists.ts";
import { toDollarsPerToken } from "../../src/models/catalog/listed-model.ts";
import { expect, it } from "vitest";
import { findCatalogProblems } from "../../src/models/catalog/catalog-problems.ts";
import {
  getAllowedDataLocations,
  listModels,
  resolveModel,
} from "../../src/models/catalog/catalog.ts";
import type { ActiveProvider } from "../../src/models/catalog/catalog.ts";
import { SANDBOX_MODELS } from "../../src/models/catalog/models.ts";
import { catalogOf, configWith } from "./config-fixture.ts";

const OPENAI_EU: ActiveProvider = { id: "openai", regions: ["eu"] };
const SANDBOX: ActiveProvider = { id: "sandbox", regions: ["eu"] };

const problems = (vars: Record<string, string>) =>
  findCatalogProblems(configWith(vars), ["openai"]).map(
    ({ variable, problem }) => `${variable}: ${problem}`,
  );

const LLAMA = {
  id: "local/llama",
  kind: "chat",
  context: 8192,
  price: { input: 0, output: 0 },
  routes: [{ provider: "ollama", upstream_id: "llama3.3" }],
};
const OLLAMA_ENTRY = { id: "ollama", base_url: "http://localhost:11434/v1", regions: ["eu"] };
const WITH_LLAMA = {
  PROVIDERS: JSON.stringify([OLLAMA_ENTRY]),
  MODELS: JSON.stringify([LLAMA]),
};

it("the catalog includes only routes to hosts that the region's RESIDENCY allows", () => {
  const tags = ["eu", "us", "global"] as const;
  for (const region of ["eu", "us"] as const) {
    for (const residency of ["strict", "relaxed"]) {
      const other = region === "eu" ? "us" : "eu";
      for (const tag of tags) {
        const live = [
          { id: "openai", regions: [tag] },
          { id: "ollama", regions: [tag] },
        ] as const;
        const vars = { ...WITH_LLAMA, REGION: region, RESIDENCY: residency };
        const { models } = catalogOf(vars, live);
        const mayServe =
          tag !== other && (tag === region || region === "us" || residency === "relaxed");
        const sold = ["local/llama", "openai/gpt-4o"].filter((id) => models.has(id));
        expect(sold).toHaveLength(mayServe ? 2 : 0);
        expect(models.size > 0).toBe(mayServe);
      }
    }
  }
  expect(getAllowedDataLocations({ region: "eu", residency: "strict" })).toEqual(["eu"]);
});

it("the catalog raises built-in prices by a markup, and keeps an operator's own prices", () => {
  const own = { ...LLAMA, price: { input: 100, cached: 10, output: 300 } };
  const vars = { ...WITH_LLAMA, MODELS: JSON.stringify([own]), MARKUP_PERCENT: "20" };
  const { models } = catalogOf(vars, [OPENAI_EU, { id: "ollama", regions: ["eu"] }]);
  expect(models.get("openai/gpt-4o-mini")?.routes[0]?.price.input).toBe(180_000);
  expect(models.get("local/llama")?.routes[0]?.price).toEqual({
    input: 100,
    cached: 10,
    cacheWrite: 100,
    output: 300,
  });
});

it("the catalog replaces a built-in model with an operator's model of the same ID", () => {
  const own = {
    ...LLAMA,
    id: "openai/gpt-4o",
    price: { input: 9, output: 9 },
    routes: [{ provider: "openai", upstream_id: "gpt-4o" }],
  };
  const { models } = catalogOf({ MODELS: JSON.stringify([own]) }, [OPENAI_EU]);
  expect(models.get("openai/gpt-4o")?.routes).toHaveLength(1);
  expect(models.get("openai/gpt-4o")?.routes[0]?.price.input).toBe(9);
});

it("the catalog uses the sandbox for aliases only if no other provider is available", () => {
  const alone = catalogOf({ SANDBOX: "on" }, [SANDBOX]);
  expect(Object.fromEntries(alone.aliases)).toEqual({
    smart: "sandbox/echo",
    fast: "sandbox/echo",
    cheap: "sandbox/echo",
    "embeddings/cheapest": "sandbox/embed",
  });
  const both = catalogOf({ SANDBOX: "on", ...WITH_LLAMA }, [
    SANDBOX,
    { id: "ollama", regions: ["eu"] },
  ]);
  expect(Object.fromEntries(both.aliases)).toEqual({
    smart: "local/llama",
    fast: "local/llama",
    cheap: "local/llama",
  });
  expect(catalogOf({ SANDBOX: "off" }, [SANDBOX]).models.size).toBe(0);
});

it("the catalog uses an operator's model for an alias, or omits the alias if that model is unavailable", () => {
  const pins = { smart: "openai/gpt-4o", house: "openai/gpt-4o-mini", fast: "sandbox/echo" };
  const { aliases } = catalogOf({ ALIASES: JSON.stringify(pins) }, [OPENAI_EU]);
  expect(aliases.get("smart")).toBe("openai/gpt-4o");
  expect(aliases.get("house")).toBe("openai/gpt-4o-mini");
  expect(aliases.has("fast")).toBe(false);
});

it("the catalog finds a model by name, and rejects unknown names, unavailable models and models of another kind", () => {
  const catalog = catalogOf({}, [OPENAI_EU]);
  expect(resolveModel(catalog, "cheap", "chat")).toMatchObject({
    ok: true,
    value: { id: "openai/gpt-5-nano", routes: [{ provider: "openai", upstreamId: "gpt-5-nano" }] },
  });
  const names = [
    "../x",
    "http://169.254.169.254/",
    "x".repeat(1000),
    "💥",
    "__proto__",
    "constructor",
  ];
  for (const name of [
    ...names,
    "embeddings/cheapest",
    "sandbox/echo",
    "openai/text-embedding-3-small",
  ]) {
    expect(resolveModel(catalog, name, "chat")).toMatchObject({
      ok: false,
      failure: { kind: "model_not_found", model: name },
    });
  }
  const other = resolveModel(catalog, "openai/text-embedding-3-small", "chat");
  expect(other).toMatchObject({
    failure: { message: expect.stringContaining("/v1/embeddings") as string },
  });
});

it.each([
  ["claude-sonnet-5.5", "claude-sonnet-5.5"],
  ["claude-sonnet-5-5", "claude-sonnet-5.5"],
  ["anthropic/claude-opus-4-8", "claude-opus-4.8"],
  ["claude-haiku-4-5-20251001", "claude-haiku-4.5"],
  ["claude-haiku-4-5-latest", "claude-haiku-4.5"],
  ["claude-opus-5-5[1m]", "claude-opus-5.5"],
  ["claude-sonnet-5[1m]", "claude-sonnet-5"],
  ["claude-sonnet-5-20260630", "claude-sonnet-5"],
  ["claude-sonnet-9-9", null],
  ["claude-3-5-sonnet-20241022", null],
  ["anthropic.claude-haiku-4-5-20251001-v1:0", null],
  ["gpt-4o[1m]", null],
])("the catalog finds Claude models by Anthropic's names: %s is %s", (name, model) => {
  const live = [{ id: "anthropic", regions: ["global"] }, OPENAI_EU] as const;
  const resolved = resolveModel(catalogOf({ RESIDENCY: "relaxed" }, live), name, "chat");
  expect(resolved.ok ? resolved.value.id : null).toBe(model && `anthropic/${model}`);
});

it("the catalog lists every available model and alias once, sorted, with creation time and owner", () => {
  const catalog = catalogOf({ SANDBOX: "on" }, [SANDBOX]);
  const listed = listModels({ catalog, pricing: NO_PRICE_LISTS, later: [] });
  const ids = listed.map((model) => model.id);
  expect(ids).toEqual([...new Set(ids)].toSorted());
  expect(ids).toHaveLength(SANDBOX_MODELS.length + 4);
  expect(listed.find((model) => model.id === "cheap")).toMatchObject({
    id: "cheap",
    object: "model",
    created: Date.UTC(2026, 0, 1) / 1000,
    owned_by: "turnpike",
  });
  expect(listed.find((model) => model.id === "sandbox/echo")?.owned_by).toBe("sandbox");
});

it("the catalog formats dollars per token exactly, without an exponent", () => {
  expect(
    [0, 1, 150_000, 2_500_000, 1_000_000_000_000, 1_230_000_000_000].map(toDollarsPerToken),
  ).toEqual(["0", "0.000000000001", "0.00000015", "0.0000025", "1", "1.23"]);
});

it("the catalog reports contradictory PROVIDERS, MODELS and ALIASES", () => {
  expect(problems(WITH_LLAMA)).toEqual([]);
  expect(problems({ MODELS: JSON.stringify([LLAMA]) })).toEqual([
    'MODELS: "local/llama" has a route to "ollama", which is neither built in nor in PROVIDERS',
  ]);
  const clashes = [LLAMA, LLAMA, { ...LLAMA, id: "cheap" }, { ...LLAMA, id: "sandbox/echo" }];
  expect(problems({ ...WITH_LLAMA, MODELS: JSON.stringify(clashes) })).toEqual([
    'MODELS: names the model "local/llama" twice',
    'MODELS: "cheap" is an alias; choose another id',
    'MODELS: "sandbox/echo": ids under sandbox/ are built in',
  ]);
  const twice = [OLLAMA_ENTRY, OLLAMA_ENTRY, { ...OLLAMA_ENTRY, id: "openai" }];
  expect(problems({ PROVIDERS: JSON.stringify(twice) })).toHaveLength(2);
  const aliases = {
    smart: "openai/text-embedding-3-small",
    x: "nope",
    "openai/gpt-4o": "openai/gpt-4o-mini",
  };
  expect(problems({ ALIASES: JSON.stringify(aliases) })).toEqual([
    'ALIASES: "smart" must mean a model for chat',
    'ALIASES: "x" means "nope", which is no model',
    'ALIASES: "openai/gpt-4o" is a model; choose another name',
  ]);
});
