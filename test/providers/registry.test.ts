import { callOf } from "./adapter-kit.ts";
import { expect, it, vi } from "vitest";
import { parseConfig } from "../../src/shared/config/config.ts";
import type { Provider } from "../../src/models/core/provider.ts";
import {
  buildProviders,
  listActiveProviders,
  findProviderProblems,
} from "../../src/models/providers/registry.ts";
import { chunkOf, DONE, openAiEvent, usageChunk } from "../fixtures/openai-replies.ts";

const BASE = {
  KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
  ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
  REGION: "eu",
};
const SANDBOX: Provider = {
  id: "sandbox",
  send: () => Promise.resolve({ kind: "failure", failure: { kind: "retry", reason: "test" } }),
};
/** The entries in docs/providers.md, which need no secret or code. */
const LOCAL = [
  { id: "ollama", base_url: "http://localhost:11434/v1/", regions: ["eu"] },
  { id: "vllm", base_url: "http://localhost:8000/v1", secret: "VLLM_KEY", regions: ["eu"] },
];

function configOf(vars: Record<string, string>) {
  const parsed = parseConfig({ ...BASE, ...vars });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

/** Responds to every request with `response`. Returns the requests. */
function upstream(response: () => Response) {
  const requests: { url: string; init: RequestInit }[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    requests.push({ url: typeof input === "string" ? input : "", init: init ?? {} });
    return response();
  });
  return requests;
}

function send(provider: Provider | undefined, stream = false) {
  if (provider === undefined) throw new Error("not configured");
  const body = { messages: [{ role: "developer", content: "Hi" }] };
  return provider.send(callOf({ upstreamId: "llama3.3", body, stream, cap: 9 }));
}

const sendToOpenAi = (vars: Record<string, string>) =>
  send(buildProviders(configOf({ OPENAI_API_KEY: "o", ...vars }), SANDBOX).get("openai"));

function sentBody(init: RequestInit | undefined): unknown {
  return JSON.parse(typeof init?.body === "string" ? init.body : "null");
}

it("the provider Ollama gets max_tokens and a system role, without an Authorization header", async () => {
  const message = { role: "assistant", content: "Hello" };
  const requests = upstream(() => Response.json({ choices: [{ message, finish_reason: "stop" }] }));
  const config = configOf({ PROVIDERS: JSON.stringify(LOCAL) });
  const answer = await send(buildProviders(config, SANDBOX).get("ollama"));
  expect(answer).toMatchObject({ kind: "json", usage: null });
  expect(requests[0]?.url).toBe("http://localhost:11434/v1/chat/completions");
  expect(new Headers(requests[0]?.init.headers).has("authorization")).toBe(false);
  expect(requests[0]?.init.redirect).toBe("manual");
  expect(sentBody(requests[0]?.init)).toEqual({
    model: "llama3.3",
    messages: [{ role: "system", content: "Hi" }],
    max_tokens: 9,
  });
});

it("the provider vLLM gets its key, and a request for usage in streams", async () => {
  const chunks = [chunkOf({ content: "Hi" }), chunkOf({}, "stop"), usageChunk()];
  const headers = { "content-type": "text/event-stream" };
  const requests = upstream(
    () => new Response(chunks.map(openAiEvent).join("") + DONE, { headers }),
  );
  const config = configOf({ PROVIDERS: JSON.stringify(LOCAL), VLLM_KEY: "secret-vllm" });
  const answer = await send(buildProviders(config, SANDBOX).get("vllm"), true);
  if (answer.kind !== "stream") throw new Error("no stream");
  const kinds = (await answer.events.next())?.map((event) => event.kind);
  expect(kinds).toEqual(["chunk", "chunk", "usage", "end"]);
  expect(await answer.events.next()).toBeNull();
  expect(new Headers(requests[0]?.init.headers).get("authorization")).toBe("Bearer secret-vllm");
  expect(sentBody(requests[0]?.init)).toMatchObject({ stream_options: { include_usage: true } });
});

it("a provider is available once its key, or the secret named in its PROVIDERS entry, is set", () => {
  const live = (vars: Record<string, string>) =>
    listActiveProviders(configOf(vars)).map((provider) => provider.id);
  expect(live({})).toEqual([]);
  expect(live({ SANDBOX: "on" })).toEqual(["sandbox"]);
  expect(live({ PROVIDERS: JSON.stringify(LOCAL) })).toEqual(["ollama"]);
  const all = {
    PROVIDERS: JSON.stringify(LOCAL),
    VLLM_KEY: "v",
    OPENAI_API_KEY: "o",
    SANDBOX: "on",
  };
  expect(live(all)).toEqual(["openai", "ollama", "vllm", "sandbox"]);
  expect([...buildProviders(configOf(all), SANDBOX).keys()]).toEqual(live(all));
});

it("the provider OpenAI is called at this region's host or at a configured proxy", async () => {
  const requests = upstream(() => new Response("", { status: 500 }));
  await sendToOpenAi({ OPENAI_RESIDENCY: "on" });
  await sendToOpenAi({ OPENAI_RESIDENCY: "on", REGION: "us" });
  await sendToOpenAi({ REGION: "us" });
  await sendToOpenAi({ OPENAI_BASE_URL: "https://proxy.example/openai" });
  expect(requests.map((one) => one.url)).toEqual([
    "https://eu.api.openai.com/v1/chat/completions",
    "https://us.api.openai.com/v1/chat/completions",
    "https://api.openai.com/v1/chat/completions",
    "https://proxy.example/openai/chat/completions",
  ]);
});

it("a provider's redirect, invalid body or network error becomes a failure without the provider's text", async () => {
  const config = configOf({ PROVIDERS: JSON.stringify(LOCAL) });
  const provider = buildProviders(config, SANDBOX).get("ollama");
  const headers = { location: "http://169.254.169.254/" };
  const bad = [
    () => new Response(null, { status: 302, headers }),
    () => new Response("<h1>", { headers: { "content-type": "text/html" } }),
    () => Response.json({ choices: [] }),
    () => Response.json({ error: { message: "canary", code: 502 } }),
    () => {
      throw new TypeError("canary: connection refused to localhost:11434");
    },
  ];
  for (const response of bad) {
    for (const stream of [true, false]) {
      upstream(response);
      const answer = await send(provider, stream);
      expect(answer).toMatchObject({ kind: "failure", failure: { kind: "retry" } });
      expect(JSON.stringify(answer)).not.toMatch(/canary|localhost|169/);
    }
  }
});

it("an invalid profile or address of a provider is reported as an error", () => {
  const entries = [
    { ...LOCAL[0], profile: "olama" },
    { ...LOCAL[0], id: "two", base_url: "ftp://host/v1" },
    { ...LOCAL[0], id: "three", base_url: "https://user:pass@host/v1" },
  ];
  const vars = { PROVIDERS: JSON.stringify(entries), OPENAI_BASE_URL: "not an address" };
  const problems = findProviderProblems(configOf(vars));
  expect(problems.map((problem) => problem.variable)).toEqual([
    "PROVIDERS",
    "PROVIDERS",
    "PROVIDERS",
    "OPENAI_BASE_URL",
  ]);
  expect(JSON.stringify(problems)).not.toContain("pass@");
  expect(findProviderProblems(configOf({ PROVIDERS: JSON.stringify(LOCAL) }))).toEqual([]);
});
