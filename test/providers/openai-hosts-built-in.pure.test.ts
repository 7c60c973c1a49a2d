import { expect, it } from "vitest";
import { parseConfig } from "../../src/shared/config/config.ts";
import { OPENAI_COMPATIBLE_PROVIDERS } from "../../src/models/providers/openai-hosts.ts";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { HOST_PROFILE_BY_ID } from "../../src/models/providers/profiles.ts";
import { answerTo, callOf, mockNetwork } from "./adapter-kit.ts";

const BASE = {
  KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
  ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
};
const KEYS = Object.fromEntries(
  OPENAI_COMPATIBLE_PROVIDERS.flatMap(({ variables }) =>
    variables.map((name) => [name, `key of ${name}`]),
  ),
);

function configOf(region: string, vars: Record<string, string> = {}) {
  const parsed = parseConfig({ ...BASE, REGION: region, ...vars });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

/** Returns the address, key and promised region of each provider that is available in a region. */
async function addresses(region: string, vars: Record<string, string> = KEYS) {
  const config = configOf(region, vars);
  const live = OPENAI_COMPATIBLE_PROVIDERS.filter(
    (one) => one.isSet(config) && one.tags(config).length > 0,
  );
  const requests = mockNetwork([{ status: 500, headers: {}, body: "" }]);
  const rows: string[] = [];
  for (const builtIn of live) {
    await builtIn.build(config).send(callOfHost(builtIn.id));
    const last = requests.at(-1);
    expect(last?.headers.get("authorization")).toBe(
      `Bearer ${config.secret(builtIn.variables[0] ?? "")}`,
    );
    rows.push(`${builtIn.id} ${builtIn.tags(config).join()} ${last?.url}`);
  }
  return rows;
}

/** Returns a call of a kind that the provider offers. */
function callOfHost(id: string) {
  if (id === "voyage") return callOf({ kind: "embeddings", body: { input: "a" } });
  return id === "jina" ? callOf({ kind: "rerank", body: RANK }) : callOf();
}

const RANK = { query: "a", documents: ["b"], top_n: 1 };

const ANYWHERE = [
  "groq global https://api.groq.com/openai/v1/chat/completions",
  "deepseek global https://api.deepseek.com/chat/completions",
  "together global https://api.together.xyz/v1/chat/completions",
  "fireworks global https://api.fireworks.ai/inference/v1/chat/completions",
  "xai global https://api.x.ai/v1/chat/completions",
];
const LAST = [
  "voyage global https://api.voyageai.com/v1/embeddings",
  "jina global https://api.jina.ai/v1/rerank",
];
const CEREBRAS = "cerebras global https://api.cerebras.ai/v1/chat/completions";
const OPENAI = "openai global https://api.openai.com/v1/chat/completions";
const OPENROUTER = "openrouter global https://openrouter.ai/api/v1/chat/completions";

it("each built-in provider is called in the promised region, and is available only with the provider's key", async () => {
  expect(await addresses("eu")).toEqual([
    OPENAI,
    "mistral eu https://api.eu.mistral.ai/v1/chat/completions",
    ...ANYWHERE,
    CEREBRAS,
    OPENROUTER,
    ...LAST,
  ]);
  expect(await addresses("us")).toEqual([
    OPENAI,
    "mistral us https://api.us.mistral.ai/v1/chat/completions",
    ...ANYWHERE,
    "xai-us us https://us.api.x.ai/v1/chat/completions",
    CEREBRAS,
    OPENROUTER,
    ...LAST,
  ]);
  expect(await addresses("eu", {})).toEqual([]);
  expect(await addresses("us", { XAI_API_KEY: "x" })).toEqual([
    "xai global https://api.x.ai/v1/chat/completions",
    "xai-us us https://us.api.x.ai/v1/chat/completions",
  ]);
});

it("OpenAI's regional hosts are called only if configured, and otherwise the global host is called", async () => {
  const own = { OPENAI_API_KEY: "k" };
  const residency = { ...own, OPENAI_RESIDENCY: "on" };
  for (const region of ["eu", "us"]) {
    expect(await addresses(region, own)).toEqual([OPENAI]);
    expect(await addresses(region, residency)).toEqual([
      `openai ${region} https://${region}.api.openai.com/v1/chat/completions`,
    ]);
  }
});

it("OpenRouter's EU host is called only in the EU, and only if the operator has bought it", async () => {
  const own = { OPENROUTER_API_KEY: "k" };
  const eu = "openrouter eu https://eu.openrouter.ai/api/v1/chat/completions";
  expect(await addresses("eu", { ...own, OPENROUTER_EU: "on" })).toEqual([eu]);
  expect(await addresses("eu", { ...own, OPENROUTER_EU: "off" })).toEqual([OPENROUTER]);
  expect(await addresses("us", { ...own, OPENROUTER_EU: "on" })).toEqual([OPENROUTER]);
});

it("a MongoDB Atlas key is never sent to Voyage's host", async () => {
  expect(await addresses("us", { VOYAGE_API_KEY: "al-123" })).toEqual([
    "voyage global https://ai.mongodb.com/v1/embeddings",
  ]);
});

it("a valid base URL replaces the address of only one provider, and an invalid base URL is reported", async () => {
  const vars = { XAI_API_KEY: "x", XAI_US_BASE_URL: "https://proxy.test/x/" };
  expect(await addresses("us", vars)).toEqual([
    "xai global https://api.x.ai/v1/chat/completions",
    "xai-us us https://proxy.test/x/chat/completions",
  ]);
  const bad = configOf("eu", { ...KEYS, GROQ_BASE_URL: "ftp://x" });
  expect(OPENAI_COMPATIBLE_PROVIDERS.flatMap((one) => one.problems(bad))).toMatchObject([
    { variable: "GROQ_BASE_URL" },
  ]);
});

it.each([
  ["eu", "OPENAI", "https://api.openai.com/v1", "eu.api.openai.com"],
  ["eu", "OPENAI", "https://US.api.openai.com./v1", "eu.api.openai.com"],
  ["us", "OPENAI", "https://eu.api.openai.com/v1", "us.api.openai.com"],
  ["eu", "MISTRAL", "https://api.mistral.ai/v1", "api.eu.mistral.ai"],
  ["us", "XAI_US", "https://api.x.ai/v1", "us.api.x.ai"],
  ["eu", "OPENROUTER", "https://openrouter.ai/api/v1", "eu.openrouter.ai"],
])(
  "a deployment in %s with %s_BASE_URL=%s reports an error that recommends the regional host %s",
  (region, name, url, own) => {
    const config = configOf(region, {
      ...KEYS,
      OPENAI_RESIDENCY: "on",
      OPENROUTER_EU: "on",
      [`${name}_BASE_URL`]: url,
    });
    expect(OPENAI_COMPATIBLE_PROVIDERS.flatMap((one) => one.problems(config))).toEqual([
      {
        variable: `${name}_BASE_URL`,
        problem: `its provider does not keep prompts in this region, but ${own} does`,
      },
    ]);
  },
);

it.each([
  ["eu", "OPENAI", "https://eu.api.openai.com/v2"],
  ["us", "OPENAI", "https://api.openai.com/v1"],
  ["eu", "OPENAI", "https://openai.com.proxy.test/v1"],
  ["us", "OPENAI", "http://127.0.0.1:8080/v1"],
  ["us", "XAI", "https://us.api.x.ai/v1"],
  ["us", "OPENROUTER", "https://eu.openrouter.ai/api/v1"],
])("a deployment in %s accepts %s_BASE_URL=%s", (region, name, url) => {
  const config = configOf(region, { ...KEYS, [`${name}_BASE_URL`]: url });
  expect(OPENAI_COMPATIBLE_PROVIDERS.flatMap((one) => one.problems(config))).toEqual([]);
});

it("Azure's key is sent in Azure's special header", async () => {
  const host = { id: "azure", baseUrl: "https://r.openai.azure.com/openai/v1", secret: "k" };
  const azure = createOpenAiCompatibleProvider({ ...host, profile: HOST_PROFILE_BY_ID.azure });
  const { requests } = await answerTo(
    azure,
    { upstreamId: "my-deployment" },
    { status: 500, headers: {}, body: "" },
  );
  expect(requests[0]?.url).toBe("https://r.openai.azure.com/openai/v1/chat/completions");
  expect(requests[0]?.headers.get("api-key")).toBe("k");
  expect(requests[0]?.headers.has("authorization")).toBe(false);
  expect(requests[0]?.json["model"]).toBe("my-deployment");
});
