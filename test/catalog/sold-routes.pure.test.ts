import { describe, expect, it } from "vitest";
import { getAllowedDataLocations } from "../../src/models/catalog/catalog.ts";
import type { DataLocation } from "../../src/models/catalog/entry.ts";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { REGIONS } from "../../src/shared/regions.ts";
import { catalogOf, configWith, liveModelsIn } from "./config-fixture.ts";

const WORLDS = REGIONS.flatMap((region) =>
  (["strict", "relaxed"] as const).map((residency) => ({ region, residency })),
);
const varsOf = ({ region, residency }: (typeof WORLDS)[number]) => ({
  REGION: region,
  RESIDENCY: residency,
});

describe.each(WORLDS)(
  "the catalog in $region, with RESIDENCY $residency and all providers",
  (deployment) => {
    const { models } = catalogOf(varsOf(deployment), liveModelsIn(deployment.region));
    const allowed = getAllowedDataLocations(configWith(varsOf(deployment)));

    it("contains only routes to hosts that the region's RESIDENCY allows", () => {
      const hosts = liveModelsIn(deployment.region).flatMap(({ regions }) => regions);
      expect(models.size > 0).toBe(hosts.some((tag) => allowed.includes(tag)));
      for (const { id, routes } of models.values()) {
        const entry = CATALOG.find((one) => one.id === id);
        for (const { provider, upstreamId } of routes) {
          const known = entry?.routes.find(
            (route) => route.provider === provider && route.upstreamId === upstreamId,
          );
          const tags =
            liveModelsIn(deployment.region).find((host) => host.id === provider)?.regions ?? [];
          const usable = tags.filter(
            (tag) => allowed.includes(tag) && known?.regions.includes(tag),
          );
          expect([id, provider, usable.length > 0]).toEqual([id, provider, true]);
        }
      }
    });

    it("contains every usable model and route in order", () => {
      for (const entry of CATALOG) {
        const expected = entry.routes.filter(({ provider, regions }) =>
          liveModelsIn(deployment.region)
            .find((host) => host.id === provider)
            ?.regions.some((tag: DataLocation) => allowed.includes(tag) && regions.includes(tag)),
        );
        const sold = models.get(entry.id)?.routes ?? [];
        expect(sold.map(({ upstreamId }) => upstreamId)).toEqual(
          expected.map(({ upstreamId }) => upstreamId),
        );
      }
    });

    it("contains no route that exceeds the model's limits, and the best route reaches the limits", () => {
      for (const { context, maxOutput, abilities, routes } of models.values()) {
        expect(routes.some(({ limits }) => limits?.context === undefined)).toBe(true);
        expect(routes.some(({ limits }) => limits?.maxOutput === undefined)).toBe(true);
        for (const { limits } of routes) {
          expect(limits === undefined || Object.keys(limits).length > 0).toBe(true);
          expect(limits?.context ?? 0).toBeLessThan(context);
          expect(limits?.maxOutput ?? -1).toBeLessThan(maxOutput);
          for (const lacking of limits?.lacks ?? []) {
            expect(abilities).toContain(lacking);
            expect(routes.some((other) => other.limits?.lacks?.includes(lacking) !== true)).toBe(
              true,
            );
          }
        }
      }
    });
  },
);

it("the routes of the EU with strict residency include Claude, GPT, Gemini and Mistral, and no host outside the EU", () => {
  const { models } = catalogOf({}, liveModelsIn("eu"));
  const providers = new Set(
    [...models.values()].flatMap(({ routes }) => routes.map((r) => r.provider)),
  );
  expect([...providers].toSorted()).toEqual(["bedrock", "mistral", "openai", "vertex"]);
  expect([...models.values()].filter(({ kind }) => kind === "chat").length).toBeGreaterThan(25);
  expect([...models.values()].filter(({ kind }) => kind === "embeddings").length).toBeGreaterThan(
    3,
  );
});

it("every model has a route in at least one region", () => {
  const catalogs = WORLDS.map((deployment) =>
    catalogOf(varsOf(deployment), liveModelsIn(deployment.region)),
  );
  const isSold = (id: string) => catalogs.some(({ models }) => models.has(id));
  expect(CATALOG.filter(({ id }) => !isSold(id)).map(({ id }) => id)).toEqual([]);
});

const limitsOf = (id: string, provider: string) =>
  catalogOf({ REGION: "us" }, liveModelsIn("us"))
    .models.get(id)
    ?.routes.find((route) => route.provider === provider)?.limits;

/** Returns an operator's model at its own provider. */
const ownModel = (id: string, upstream: string) => ({
  id,
  kind: "chat",
  context: 100_000,
  price: { input: 1, output: 1 },
  routes: [{ provider: "mine", upstream_id: upstream }],
});

/** Reasoning outside of the cap: as many tokens again are held, at most this number. */
const BESIDE_THE_CAP = { outputFactor: 2, reasoningTokens: 20_000 };

describe("a limit of a route", () => {
  it("depends on the profile in an operator's own PROVIDERS entry", () => {
    const sold = catalogOf(
      {
        PROVIDERS: JSON.stringify([
          { id: "mine", base_url: "https://x.test/v1", profile: "xai", regions: ["eu"] },
        ]),
        MODELS: JSON.stringify([
          ownModel("mine/thinks", "grok-4.7"),
          ownModel("mine/quick", "grok-4.20-non-reasoning"),
        ]),
      },
      [{ id: "mine", regions: ["eu"] }],
    ).models;
    expect(sold.get("mine/thinks")?.routes[0]?.limits).toEqual(BESIDE_THE_CAP);
    expect(sold.get("mine/quick")?.routes[0]?.limits).toBeUndefined();
  });

  it("allows only n = 1 at some providers, and excludes reasoning from the output cap at xAI", () => {
    for (const [id, provider] of [
      ["anthropic/claude-opus-5.5", "anthropic"],
      ["anthropic/claude-opus-5.5", "bedrock"],
      ["cohere/command-a", "cohere"],
      ["zai/glm-4.7-flash", "workers-ai"],
    ] as const) {
      expect(limitsOf(id, provider)).toEqual({ choices: 1 });
    }
    expect(limitsOf("openai/gpt-6-luna", "openai")).toBeUndefined();
    expect(limitsOf("xai/grok-4.6", "xai")).toEqual(BESIDE_THE_CAP);
    expect(limitsOf("xai/grok-4.6", "xai-us")).toEqual(BESIDE_THE_CAP);
    expect(limitsOf("cohere/embed-v4.0", "cohere")).toBeUndefined();
  });

  it("equals the model's limit if the model has only one route", () => {
    expect(limitsOf("meta/llama-3.3-70b", "workers-ai")).toEqual({
      choices: 1,
      context: 24_000,
    });
    const alone = catalogOf({ REGION: "us" }, liveModelsIn("us", ["workers-ai"])).models;
    const llama = alone.get("meta/llama-3.3-70b");
    expect(llama).toMatchObject({ context: 24_000, maxOutput: 24_000 });
    expect(llama?.routes.map(({ limits }) => limits)).toEqual([{ choices: 1 }]);
  });

  it("applies to an operator's own route to a built-in provider", () => {
    const own = {
      id: "own/claude",
      kind: "chat",
      context: 1000,
      price: { input: 1, output: 1 },
      routes: [{ provider: "anthropic", upstream_id: "claude-next" }],
    };
    const { models } = catalogOf(
      { REGION: "us", MODELS: JSON.stringify([own]) },
      liveModelsIn("us", ["anthropic"]),
    );
    expect(models.get("own/claude")?.routes[0]?.limits).toEqual({ choices: 1 });
  });
});

it("Claude 4.5 models are the only models with a minimum of thinking tokens", () => {
  const { models } = catalogOf({ REGION: "us" }, liveModelsIn("us"));
  const floors = [...models.values()].flatMap(({ id, thinkingFloor }) =>
    thinkingFloor === undefined ? [] : [[id, thinkingFloor]],
  );
  expect(floors).toEqual([["anthropic/claude-haiku-4.5", 1024]]);
});
