import { afterEach, expect, it, vi } from "vitest";
import { developerBindings } from "../../scripts/dev-bindings.ts";
import { REGION_NAMES } from "../../scripts/region-names.ts";
import type { RegionName } from "../../scripts/region-names.ts";
import { parseConfig } from "../../src/shared/config/config.ts";
import { BUILT_IN_PROVIDERS } from "../../src/models/providers/registry.ts";

afterEach(() => vi.unstubAllEnvs());

/** Returns the variables that built-in providers read. `value` sets each of them. */
function variablesRead(region: RegionName, value: (name: string) => string | undefined): string[] {
  const parsed = parseConfig({
    REGION: region,
    KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
    ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const names = new Set<string>();
  const secret = (name: string): string | undefined => {
    names.add(name);
    return value(name);
  };
  for (const builtIn of BUILT_IN_PROVIDERS) {
    const config = { ...parsed.config, secret };
    builtIn.isSet(config);
    builtIn.tags(config);
    builtIn.problems(config);
  }
  return [...names];
}

it.each(REGION_NAMES)(
  "npm start passes the variables of every built-in provider to the region %s",
  (region) => {
    const read = new Set([
      ...variablesRead(region, () => undefined),
      ...variablesRead(region, () => "x"),
      // Bedrock only reads the access key and its session without an API key.
      ...variablesRead(region, (name) => (name === "AWS_BEARER_TOKEN_BEDROCK" ? undefined : "x")),
    ]);
    for (const name of [
      "OPENAI_API_KEY",
      "XAI_US_BASE_URL",
      "GEMINI_BASE_URL",
      "AWS_SESSION_TOKEN",
    ]) {
      expect(read).toContain(name);
    }
    for (const name of read) vi.stubEnv(name, `${region}-value of ${name}`);
    expect(developerBindings(region)).toMatchObject(
      Object.fromEntries([...read].map((name) => [name, `${region}-value of ${name}`])),
    );
  },
);

it.each(["PROVIDERS", "LOGIN_ISSUERS"])(
  "npm start passes the secret that an entry of %s refers to",
  (variable) => {
    vi.stubEnv(variable, '[{"id":"own","secret":"OWN_SECRET"}]');
    vi.stubEnv("OWN_SECRET", "a value");
    expect(developerBindings("eu")).toMatchObject({ OWN_SECRET: "a value" });
  },
);

it("npm start passes AWS_REGION only to the region that may call this AWS region", () => {
  vi.stubEnv("AWS_REGION", "eu-west-1");
  expect(developerBindings("eu")).toHaveProperty("AWS_REGION", "eu-west-1");
  expect(developerBindings("us")).not.toHaveProperty("AWS_REGION");
  vi.stubEnv("AWS_REGION", "us-west-2");
  expect(developerBindings("eu")).not.toHaveProperty("AWS_REGION");
  expect(developerBindings("us")).toHaveProperty("AWS_REGION", "us-west-2");
});

it("npm start passes the secrets that PROVIDERS refers to, and ignores empty variables", () => {
  vi.stubEnv("PROVIDERS", '[{"id":"vllm","secret":"VLLM_KEY"}]');
  vi.stubEnv("VLLM_KEY", "one of vLLM's");
  expect(developerBindings("eu")).toHaveProperty("VLLM_KEY", "one of vLLM's");
  vi.stubEnv("VLLM_KEY", "");
  expect(developerBindings("eu")).not.toHaveProperty("VLLM_KEY");
});
