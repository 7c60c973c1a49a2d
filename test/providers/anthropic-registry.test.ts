import { expect, it } from "vitest";
import { parseConfig } from "../../src/shared/config/config.ts";
import { ANTHROPIC_PROVIDER } from "../../src/models/providers/anthropic.ts";
import { listActiveProviders, findProviderProblems } from "../../src/models/providers/registry.ts";
import { ANTHROPIC_CHAT } from "../fixtures/anthropic-replies.ts";
import { answerTo } from "./adapter-kit.ts";

const BASE = {
  KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
  ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
  REGION: "eu",
};

function configOf(vars: Record<string, string>) {
  const parsed = parseConfig({ ...BASE, ...vars });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

it("the Anthropic provider needs only its API key, and requests US-only inference only in the US", () => {
  expect(listActiveProviders(configOf({}))).toEqual([]);
  expect(listActiveProviders(configOf({ ANTHROPIC_API_KEY: "k" }))).toEqual([
    { id: "anthropic", regions: ["global"] },
  ]);
  expect(listActiveProviders(configOf({ ANTHROPIC_API_KEY: "k", REGION: "us" }))).toEqual([
    { id: "anthropic", regions: ["us", "global"] },
  ]);
});

it("the Anthropic provider with an invalid base URL reports an error, and isn't used", () => {
  const config = configOf({ ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: "no address" });
  expect(findProviderProblems(config).map((one) => one.variable)).toEqual(["ANTHROPIC_BASE_URL"]);
  expect(listActiveProviders(config)).toEqual([]);
});

it.each([
  ["eu", {}, "https://api.anthropic.com/v1/messages", undefined],
  ["us", {}, "https://api.anthropic.com/v1/messages", "us"],
  ["us", { ANTHROPIC_BASE_URL: "https://proxy.test/a/" }, "https://proxy.test/a/messages", "us"],
])(
  "the Anthropic provider in the region %s with the variables %j calls %s with inference_geo %s",
  async (REGION, vars, url, geo) => {
    const provider = ANTHROPIC_PROVIDER.build(
      configOf({ ANTHROPIC_API_KEY: "k", REGION, ...vars }),
    );
    const call = { upstreamId: "claude-sonnet-5" };
    const { requests } = await answerTo(provider, call, ANTHROPIC_CHAT.text.json);
    expect(requests[0]).toMatchObject({ url, json: { model: "claude-sonnet-5" } });
    expect(requests[0]?.json["inference_geo"]).toBe(geo);
  },
);
