import { describe, expect, it } from "vitest";
import { REGIONS } from "../../src/shared/regions.ts";
import { catalogOf, liveModelsIn, PROVIDERS } from "./config-fixture.ts";

type Meaning = readonly [
  smart: string | null,
  fast: string | null,
  cheap: string | null,
  embeddings: string | null,
];
const NONE: Meaning = [null, null, null, null];

/** The aliases with only one provider, in the EU with strict residency and in the US. */
const ALONE: Readonly<Record<(typeof PROVIDERS)[number], readonly [eu: Meaning, us: Meaning]>> = {
  anthropic: [
    NONE,
    ["anthropic/claude-opus-5.5", "anthropic/claude-haiku-5.5", "anthropic/claude-haiku-5.5", null],
  ],
  bedrock: [
    [
      "anthropic/claude-opus-5.5",
      "anthropic/claude-haiku-5.5",
      "anthropic/claude-haiku-5.5",
      "amazon/titan-embed-v2",
    ],
    [
      "anthropic/claude-opus-5.5",
      "anthropic/claude-haiku-5.5",
      "amazon/nova-micro",
      "amazon/titan-embed-v2",
    ],
  ],
  cerebras: [NONE, ["openai/gpt-oss-120b", "openai/gpt-oss-120b", "openai/gpt-oss-120b", null]],
  cohere: [
    NONE,
    [
      "cohere/command-a-reasoning",
      "cohere/command-r7b",
      "cohere/command-r7b",
      "cohere/embed-multilingual-v3.0",
    ],
  ],
  deepseek: [
    NONE,
    [
      "deepseek/deepseek-v4-pro",
      "deepseek/deepseek-v4.1-flash",
      "deepseek/deepseek-v4.1-flash",
      null,
    ],
  ],
  elevenlabs: [NONE, NONE],
  fireworks: [NONE, ["moonshotai/kimi-k3", "minimax/minimax-m3", "minimax/minimax-m3", null]],
  google: [
    NONE,
    [
      "google/gemini-3.8-flash",
      "google/gemini-3.5-flash-lite",
      "google/gemini-2.5-flash-lite",
      "google/gemini-embedding-001",
    ],
  ],
  groq: [NONE, ["openai/gpt-oss-120b", "openai/gpt-oss-120b", "openai/gpt-oss-20b", null]],
  mistral: [
    ["mistral/mistral-medium-3.5", "mistral/mistral-small-4", "mistral/mistral-small-4", null],
    ["mistral/mistral-medium-3.5", "mistral/mistral-small-4", "mistral/mistral-small-4", null],
  ],
  openai: [
    ["openai/gpt-6-sol", "openai/gpt-6-luna", "openai/gpt-5-nano", "openai/text-embedding-3-small"],
    ["openai/gpt-6-sol", "openai/gpt-6-luna", "openai/gpt-5-nano", "openai/text-embedding-3-small"],
  ],
  together: [
    NONE,
    ["deepseek/deepseek-v4-pro", "openai/gpt-oss-120b", "openai/gpt-oss-120b", null],
  ],
  vertex: [
    [
      "google/gemini-3.8-flash",
      "google/gemini-3.5-flash-lite",
      "google/gemini-3.1-flash-lite",
      "google/gemini-embedding-001",
    ],
    [
      "google/gemini-3.8-flash",
      "google/gemini-3.5-flash-lite",
      "google/gemini-3.1-flash-lite",
      "google/gemini-embedding-001",
    ],
  ],
  jina: [NONE, NONE],
  voyage: [NONE, [null, null, null, "voyage/voyage-4-lite"]],
  "workers-ai": [NONE, ["zai/glm-5.2", "openai/gpt-oss-120b", "qwen/qwen3-30b", "baai/bge-m3"]],
  xai: [NONE, ["xai/grok-4.6", "xai/grok-4.3", "xai/grok-4.3", null]],
  "xai-us": [NONE, ["xai/grok-4.6", null, "xai/grok-4.6", null]],
};

const meaningOf = (aliases: ReadonlyMap<string, string>) =>
  ["smart", "fast", "cheap", "embeddings/cheapest"].map((alias) => aliases.get(alias) ?? null);

describe.each(["eu", "us"] as const)(
  "a model alias with only one provider in the region %s",
  (region) => {
    it.each(PROVIDERS)("points to the expected model for the provider %s", (provider) => {
      const { aliases } = catalogOf({ REGION: region }, liveModelsIn(region, [provider]));
      expect(meaningOf(aliases)).toEqual(ALONE[provider][region === "eu" ? 0 : 1]);
    });
  },
);

describe("a model alias with several providers", () => {
  it("points to the expected model in the EU and the US", () => {
    expect(meaningOf(catalogOf({}, liveModelsIn("eu")).aliases)).toEqual([
      "anthropic/claude-opus-5.5",
      "openai/gpt-6-luna",
      "openai/gpt-5-nano",
      "amazon/titan-embed-v2",
    ]);
    expect(meaningOf(catalogOf({ REGION: "us" }, liveModelsIn("us")).aliases)).toEqual([
      "anthropic/claude-opus-5.5",
      "openai/gpt-6-luna",
      "amazon/nova-micro",
      "baai/bge-m3",
    ]);
  });

  it("points to the sandbox only if no other provider is available", () => {
    const sandbox = { id: "sandbox", regions: ["eu"] } as const;
    const both = catalogOf({ SANDBOX: "on" }, [
      sandbox,
      ...liveModelsIn("eu", ["mistral"]),
    ]).aliases;
    expect(meaningOf(both)).toEqual(ALONE.mistral[0]);
    expect(meaningOf(catalogOf({ SANDBOX: "on" }, [sandbox]).aliases)).toEqual([
      "sandbox/echo",
      "sandbox/echo",
      "sandbox/echo",
      "sandbox/embed",
    ]);
  });

  it("doesn't exist under the name smart, fast or cheap if only embeddings models are available", () => {
    const { aliases } = catalogOf({ REGION: "us" }, liveModelsIn("us", ["voyage"]));
    expect([...aliases.keys()]).toEqual(["embeddings/cheapest"]);
  });

  it("depends only on models' prices, never on the health or order of providers", () => {
    const once = catalogOf({ REGION: "us" }, liveModelsIn("us")).aliases;
    const backwards = catalogOf({ REGION: "us" }, liveModelsIn("us").toReversed()).aliases;
    expect([...backwards]).toEqual([...once]);
  });

  it("points to a model with tool support in every region if the alias is smart or fast", () => {
    const targets = REGIONS.flatMap((region) =>
      PROVIDERS.flatMap((provider) => {
        const { models, aliases } = catalogOf({ REGION: region }, liveModelsIn(region, [provider]));
        return ["smart", "fast"].map((alias) => models.get(aliases.get(alias) ?? ""));
      }),
    ).filter((model) => model !== undefined);
    expect(targets.length).toBeGreaterThan(30);
    for (const { abilities } of targets) expect(abilities).toContain("tools");
  });
});
