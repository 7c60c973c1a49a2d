import { FormFile } from "../../src/shared/http/form.ts";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { Catalog } from "../../src/models/catalog/catalog.ts";
import type { Route } from "../../src/models/catalog/model.ts";
import type { CallKind } from "../../src/shared/kinds.ts";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { parseConfig } from "../../src/shared/config/config.ts";
import type { Config } from "../../src/shared/config/config.ts";
import { getDeployment } from "../../src/models/requests/deployment.ts";
import type { Deployment } from "../../src/models/requests/deployment.ts";
import { BUILT_IN_PROVIDERS } from "../../src/models/providers/registry.ts";
import { liveModelsIn, PROVIDERS } from "../catalog/config-fixture.ts";
import { callOf, mockNetwork } from "../providers/adapter-kit.ts";
import type { SentRequest } from "../providers/adapter-kit.ts";
import type { Region } from "../../src/shared/regions.ts";

/** The hosts that promise to run a request in a region, and those that promise nothing. */
const HOSTS = {
  eu: [
    "eu.api.openai.com",
    "api.eu.mistral.ai",
    "aiplatform.eu.rep.googleapis.com",
    "bedrock-runtime.eu-central-1.amazonaws.com",
    "eu.openrouter.ai",
  ],
  us: [
    "us.api.openai.com",
    "api.us.mistral.ai",
    "us.api.x.ai",
    "aiplatform.us.rep.googleapis.com",
    "bedrock-runtime.us-east-1.amazonaws.com",
  ],
  global: [
    "api.anthropic.com",
    "api.cerebras.ai",
    "api.cohere.com",
    "api.deepseek.com",
    "api.elevenlabs.io",
    "api.fireworks.ai",
    "api.groq.com",
    "api.jina.ai",
    "api.openai.com",
    "api.together.xyz",
    "api.voyageai.com",
    "api.x.ai",
    "generativelanguage.googleapis.com",
    "openrouter.ai",
  ],
} as const;
const ALLOWED: Readonly<Record<"eu" | "us", readonly string[]>> = {
  eu: HOSTS.eu,
  us: [...HOSTS.us, ...HOSTS.global],
};
/** Returns access tokens for Vertex AI. No prompt may be sent there. */
const TOKEN_HOST = "oauth2.googleapis.com";
const PROMPT = "a prompt that must not leave its region";
/** An invalid response for every provider, and an access token for those that require one. */
const REPLY = {
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ access_token: "t", expires_in: 3600, token_type: "Bearer" }),
};
const BODY = {
  messages: [{ role: "user", content: PROMPT }],
  input: PROMPT,
  file: new FormFile("audio.wav", "audio/wav", new TextEncoder().encode(PROMPT)),
  voice: "alloy",
};

let credentials: string;
let runs: string[];
beforeAll(async () => {
  credentials = JSON.stringify({
    client_email: "gateway@example.iam.gserviceaccount.com",
    private_key: await privateKey(),
    project_id: "example",
  });
});

describe.each(["eu", "us"] as const)("the deployment in %s with every provider", (region) => {
  it("sends requests for every model, alias and operator-defined model only to hosts of the region", async () => {
    const requests = mockNetwork(REPLY);
    runs = [];
    const deployment = getDeployment(configOf(region));
    expect(deployment.problems).toEqual([]);
    const routes = routesOf(deployment.catalogAt(0));
    expect(routes.length).toBeGreaterThan(PROVIDERS.length);
    const kindsOf = (provider: string) => deployment.providers.get(provider)?.kinds ?? ["chat"];
    expect(routes.filter(({ kind, provider }) => !kindsOf(provider).includes(kind))).toEqual([]);
    const silent = await walk(routes, deployment, () => prompts(requests).length + runs.length);
    expect(silent).toEqual([]);
    expect(prompts(requests).filter((host) => !ALLOWED[region].includes(host))).toEqual([]);
    const tokens = requests.filter(({ url }) => hostOf(url) === TOKEN_HOST);
    expect(tokens.filter(({ text }) => decodeURIComponent(text).includes(PROMPT))).toEqual([]);
    // Workers AI promises no region, and has no host that this test could observe.
    expect(runs.length > 0).toBe(region === "us" && isBuiltIn("workers-ai"));
  });

  it("contains the providers and regions that the catalog tests assume", () => {
    const config = configOf(region);
    const live = BUILT_IN_PROVIDERS.filter(({ id }) =>
      (PROVIDERS as readonly string[]).includes(id),
    ).map((builtIn) => ({ id: builtIn.id, regions: builtIn.tags(config).toSorted() }));
    const expected = liveModelsIn(region, PROVIDERS.filter(isBuiltIn)).map(({ id, regions }) => ({
      id,
      regions: regions.toSorted(),
    }));
    expect(live.toSorted(byId)).toEqual(expected.toSorted(byId));
  });
});

it("the configuration rejects an operator-defined model of a kind that the provider doesn't offer", () => {
  const routes = [{ provider: "anthropic", upstream_id: "m" }];
  const price = { input: 1, output: 1 };
  const MODELS = JSON.stringify(
    ["chat", "embeddings"].map((kind) => ({ id: `own/${kind}`, kind, context: 9, price, routes })),
  );
  expect(getDeployment(configOf("eu", { MODELS })).problems).toEqual([
    {
      variable: "MODELS",
      problem: '"own/embeddings" is for embeddings, which "anthropic" does not do',
    },
  ]);
});

it.each([
  ["eu", "strict", false],
  ["eu", "relaxed", true],
  ["us", "strict", true],
] as const)(
  "an ordinary OpenAI key sells models in %s with RESIDENCY %s: %s",
  (region, RESIDENCY, isSold) => {
    const { catalogAt } = getDeployment(configOf(region, { OPENAI_RESIDENCY: "", RESIDENCY }));
    const routes = catalogAt(0).models.get("openai/gpt-4o")?.routes ?? [];
    expect(routes.some(({ provider }) => provider === "openai")).toBe(isSold);
  },
);

it("a request requires US-only inference from Anthropic only if the model's price includes the surcharge", async () => {
  const { catalogAt, providers } = getDeployment(configOf("us"));
  for (const { id, routes } of catalogAt(0).models.values()) {
    const route = routes.find(({ provider }) => provider === "anthropic");
    const list = CATALOG.find((entry) => entry.id === id)?.routes[0]?.prices[0].price.input;
    if (route === undefined || list === undefined) continue;
    const requests = mockNetwork(REPLY);
    await providers.get("anthropic")?.send(callOf({ upstreamId: route.upstreamId }));
    const expected = route.price.input > list ? "us" : undefined;
    expect([id, requests.map(({ json }) => json["inference_geo"])]).toEqual([id, [expected]]);
    vi.restoreAllMocks();
  }
});

type RouteCall = Route & { readonly name: string; readonly kind: CallKind };

/** Returns every route by every name that leads to it. */
function routesOf({ models, aliases }: Catalog): RouteCall[] {
  return [...models.keys(), ...aliases.keys()].flatMap((name) => {
    const model = models.get(aliases.get(name) ?? name);
    return (model?.routes ?? []).map((route) =>
      Object.assign({ name, kind: model?.kind ?? "chat" }, route),
    );
  });
}

/** Sends one JSON and one streamed request for each. Returns those that sent nothing by `count`. */
async function walk(
  routes: readonly RouteCall[],
  { providers }: Deployment,
  count: () => number,
): Promise<string[]> {
  const silent: string[] = [];
  for (const { name, kind, provider, upstreamId } of routes) {
    const before = count();
    for (const stream of [false, kind === "chat"]) {
      await providers.get(provider)?.send(callOf({ kind, upstreamId, body: BODY, stream }));
    }
    // An operator's chat model can be at a provider that only offers embeddings.
    if (count() === before && !name.startsWith("own/")) silent.push(`${name} at ${provider}`);
  }
  return silent;
}

/** A deployment with every built-in provider set, and an operator's model at each of them. */
const CHAT = { kind: "chat", price: { input: 1, output: 1 } };
const SPEECH = { kind: "speech", price: { character: 1 } };

function configOf(region: Region, vars: Readonly<Record<string, string>> = {}): Config {
  const set = BUILT_IN_PROVIDERS.flatMap(({ variables }) => variables).map((name) => [
    name,
    valueOf(name),
  ]);
  const models = BUILT_IN_PROVIDERS.map(({ id }) => ({
    id: `own/${id}`,
    ...(id === "elevenlabs" ? SPEECH : CHAT),
    context: 1000,
    routes: [{ provider: id, upstream_id: "own" }],
  }));
  const parsed = parseConfig({
    KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
    ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
    REGION: region,
    MODELS: JSON.stringify(models),
    OPENAI_RESIDENCY: "on",
    ELEVENLABS_VOICES: BODY.voice,
    ...Object.fromEntries(set),
    ...vars,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

function valueOf(variable: string): unknown {
  if (variable === "AI") return { run };
  return variable.endsWith("_CREDENTIALS") ? credentials : `secret-of-${variable}`;
}

function run(model: string): Promise<Response> {
  runs.push(model);
  return Promise.resolve(Response.json({}));
}

/** Returns the hosts of all requests except those for tokens. */
function prompts(requests: readonly SentRequest[]): string[] {
  return requests.map(({ url }) => hostOf(url)).filter((host) => host !== TOKEN_HOST);
}

function hostOf(url: string): string {
  return new URL(url).host;
}

function isBuiltIn(id: string): boolean {
  return BUILT_IN_PROVIDERS.some((builtIn) => builtIn.id === id);
}

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1;
}

/** Returns a key as in a service account's file. */
async function privateKey(): Promise<string> {
  const algorithm = {
    name: "RSASSA-PKCS1-v1_5",
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: "SHA-256",
  };
  const pair = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  if (!("privateKey" in pair)) throw new Error("no pair");
  const bytes = await crypto.subtle.exportKey("pkcs8", pair.privateKey);
  const base64 = btoa(String.fromCharCode(...new Uint8Array(bytes as ArrayBuffer)));
  return `-----BEGIN PRIVATE KEY-----\n${base64.replaceAll(/.{64}/g, "$&\n")}\n-----END PRIVATE KEY-----\n`;
}
