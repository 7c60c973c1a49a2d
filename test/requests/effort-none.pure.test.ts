import { describe, expect, it } from "vitest";
import { chatEndpoint } from "../../src/models/endpoints/chat.ts";
import { createAnthropicProvider } from "../../src/models/providers/anthropic.ts";
import { createBedrockProvider } from "../../src/models/providers/bedrock.ts";
import { createGoogleProvider } from "../../src/models/providers/google.ts";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { createWorkersAiProvider } from "../../src/models/providers/workers-ai.ts";
import {
  OPENAI_HOST_PROFILE,
  XAI_PROFILE,
  CEREBRAS_PROFILE,
  GROQ_PROFILE,
  TOGETHER_PROFILE,
} from "../../src/models/providers/profiles.ts";
import { GEMINI_EMBEDDINGS } from "../../src/models/protocols/gemini/embeddings.ts";
import { computeRequestBounds } from "../../src/models/requests/bound-request.ts";
import type { Provider } from "../../src/models/core/provider.ts";
import { SALE_TERMS } from "../fixtures/bound-request.ts";
import { MODEL } from "./run-fixture.ts";

const hostOf = (profile: typeof GROQ_PROFILE): Provider =>
  createOpenAiCompatibleProvider({ id: "host", baseUrl: "https://host.test/v1", profile });
const CLAUDE = createAnthropicProvider({
  baseUrl: "https://claude.test/v1",
  secret: "",
  geo: null,
});
const BEDROCK = createBedrockProvider({
  tag: "eu",
  awsRegion: "eu-central-1",
  baseUrl: "https://bedrock.test",
  credentials: { kind: "bearer", token: "" },
});
const WORKERS_AI = createWorkersAiProvider({
  run: () => Promise.reject(new Error("nothing is sent")),
});
const GEMINI = createGoogleProvider({
  id: "google-ai-studio",
  modelsUrl: "https://gemini.test/v1beta/models",
  embeddings: GEMINI_EMBEDDINGS,
  credential: () => Promise.reject(new Error("nothing is sent")),
  secrets: () => [],
});

function boundAt(
  provider: Provider,
  upstreamId: string,
  effort: string,
  abilities: readonly "reasoning"[] = ["reasoning"],
) {
  const [route] = MODEL.routes;
  const model = {
    ...MODEL,
    context: 100_000,
    maxOutput: 8000,
    thinkingFloor: 1024,
    abilities,
    routes: [{ ...route, provider: "host", upstreamId }],
  };
  const models = new Map([[model.id, model]]);
  const at = { header: () => undefined, query: () => undefined };
  const body = { model: model.id, messages: [{ role: "user", content: "Hi" }] };
  const parsed = chatEndpoint.parse({ ...body, reasoning_effort: effort }, at);
  if (!parsed.ok) throw new Error("the body is valid");
  const catalog = { region: "eu", models, aliases: new Map() };
  const sold = {
    ...SALE_TERMS,
    catalog,
    providers: new Map([["host", provider]]),
    defaultCap: 100,
  };
  const bound = computeRequestBounds(
    parsed.value,
    sold as unknown as Parameters<typeof computeRequestBounds>[1],
  );
  if (!bound.ok) throw new Error(JSON.stringify(bound.failure));
  return bound.value;
}

describe("a request with the reasoning effort none", () => {
  it.each([
    ["gpt-oss at Groq, which gets low", hostOf(GROQ_PROFILE), "openai/gpt-oss-120b"],
    ["gpt-oss at Cerebras, which gets low", hostOf(CEREBRAS_PROFILE), "gpt-oss-120b"],
    ["a Grok model that gets no effort", hostOf(XAI_PROFILE), "grok-4.20-reasoning"],
    ["a Gemini model that gets its lowest level", GEMINI, "gemini-3-pro"],
    ["a Gemini model that gets its lowest budget", GEMINI, "gemini-2.5-pro"],
    ["a Claude model that always thinks", CLAUDE, "claude-fable-5-1"],
    ["a Claude model at Bedrock that always thinks", BEDROCK, "anthropic.claude-opus-5-5"],
    ["gpt-oss at Bedrock, which gets low", BEDROCK, "openai.gpt-oss-120b-1:0"],
    ["gpt-oss at Workers AI, which gets low", WORKERS_AI, "@cf/openai/gpt-oss-120b"],
  ])("may include hidden thinking on %s", (_, provider, upstreamId) => {
    const { mayThink, cap } = boundAt(provider, upstreamId, "none");
    expect({ mayThink, least: cap?.least }).toEqual({ mayThink: true, least: 1025 });
  });

  it.each([
    ["a GPT model that can disable thinking", hostOf(OPENAI_HOST_PROFILE), "gpt-6.1-sol"],
    [
      "a model whose thinking Together can disable",
      hostOf(TOGETHER_PROFILE),
      "deepseek-ai/DeepSeek-V4",
    ],
    ["a Gemini model that can disable thinking", GEMINI, "gemini-2.5-flash"],
    ["a Claude model that can disable thinking", CLAUDE, "claude-sonnet-5"],
    ["a Nova model that can disable thinking", BEDROCK, "amazon.nova-2-lite-v1:0"],
    [
      "a Kimi model at Workers AI that can disable thinking",
      WORKERS_AI,
      "@cf/moonshotai/kimi-k2.6",
    ],
  ])("includes no thinking on %s", (_, provider, upstreamId) => {
    const { mayThink, cap } = boundAt(provider, upstreamId, "none");
    expect({ mayThink, least: cap?.least }).toEqual({ mayThink: false, least: 64 });
    expect(boundAt(provider, upstreamId, "low").mayThink).toBe(true);
  });
});

describe("a request with a reasoning effort", () => {
  it("enables no thinking on a model that can't reason", () => {
    const provider = hostOf(OPENAI_HOST_PROFILE);
    expect(boundAt(provider, "gpt-4o", "low", []).mayThink).toBe(false);
  });
});
