import { describe, expect, it } from "vitest";
import { chatEndpoint } from "../../src/models/endpoints/chat.ts";
import { anthropic } from "../../src/models/providers/anthropic.ts";
import { bedrock } from "../../src/models/providers/bedrock.ts";
import { google } from "../../src/models/providers/google.ts";
import { openAiCompatible } from "../../src/models/providers/openai-compatible.ts";
import { workersAi } from "../../src/models/providers/workers-ai.ts";
import { OPENAI_HOST_PROFILE } from "../../src/models/providers/profiles/openai.ts";
import { XAI_PROFILE } from "../../src/models/providers/profiles/authors.ts";
import {
  CEREBRAS_PROFILE,
  GROQ_PROFILE,
  TOGETHER_PROFILE,
} from "../../src/models/providers/profiles/resellers.ts";
import { GEMINI_EMBEDDINGS } from "../../src/models/protocols/gemini/embeddings.ts";
import { boundRequest } from "../../src/models/requests/bound-request.ts";
import type { Provider } from "../../src/models/core/provider.ts";
import { MODEL } from "./run-fixture.ts";

const hostOf = (profile: typeof GROQ_PROFILE): Provider =>
  openAiCompatible({ id: "host", baseUrl: "https://host.test/v1", profile });
const CLAUDE = anthropic({ baseUrl: "https://claude.test/v1", secret: "", geo: null });
const BEDROCK = bedrock({
  tag: "eu",
  awsRegion: "eu-central-1",
  baseUrl: "https://bedrock.test",
  credentials: { kind: "bearer", token: "" },
});
const WORKERS_AI = workersAi({ run: () => Promise.reject(new Error("nothing is sent")) });
const GEMINI = google({
  id: "google-ai-studio",
  models: "https://gemini.test/v1beta/models",
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
  const sold = { catalog, providers: new Map([["host", provider]]), defaultCap: 100 };
  const bound = boundRequest(parsed.value, sold as unknown as Parameters<typeof boundRequest>[1]);
  if (!bound.ok) throw new Error(JSON.stringify(bound.failure));
  return bound.value;
}

describe("a request with the effort none", () => {
  it.each([
    ["gpt-oss at Groq, which gets low", hostOf(GROQ_PROFILE), "openai/gpt-oss-120b"],
    ["gpt-oss at Cerebras, which gets low", hostOf(CEREBRAS_PROFILE), "gpt-oss-120b"],
    ["a Grok that gets no effort", hostOf(XAI_PROFILE), "grok-4.20-reasoning"],
    ["a Gemini that gets its lowest level", GEMINI, "gemini-3-pro"],
    ["a Gemini that gets its lowest budget", GEMINI, "gemini-2.5-pro"],
    ["a Claude that always thinks", CLAUDE, "claude-fable-5-1"],
    ["a Claude that always thinks, at Bedrock", BEDROCK, "anthropic.claude-opus-5-5"],
    ["gpt-oss at Bedrock, which gets low", BEDROCK, "openai.gpt-oss-120b-1:0"],
    ["gpt-oss at Workers AI, which gets low", WORKERS_AI, "@cf/openai/gpt-oss-120b"],
  ])("may still think hidden on %s", (_, provider, upstreamId) => {
    const { mayThink, cap } = boundAt(provider, upstreamId, "none");
    expect({ mayThink, least: cap?.least }).toEqual({ mayThink: true, least: 1025 });
  });

  it.each([
    ["a GPT that can stop", hostOf(OPENAI_HOST_PROFILE), "gpt-6.1-sol"],
    ["a model that Together can stop", hostOf(TOGETHER_PROFILE), "deepseek-ai/DeepSeek-V4"],
    ["a Gemini that can stop", GEMINI, "gemini-2.5-flash"],
    ["a Claude that can stop", CLAUDE, "claude-sonnet-5"],
    ["a Nova that can stop", BEDROCK, "amazon.nova-2-lite-v1:0"],
    ["a Kimi at Workers AI that can stop", WORKERS_AI, "@cf/moonshotai/kimi-k2.6"],
  ])("doesn't think on %s", (_, provider, upstreamId) => {
    const { mayThink, cap } = boundAt(provider, upstreamId, "none");
    expect({ mayThink, least: cap?.least }).toEqual({ mayThink: false, least: 64 });
    expect(boundAt(provider, upstreamId, "low").mayThink).toBe(true);
  });
});

describe("a request with an effort", () => {
  it("doesn't think on a model that can't reason", () => {
    const provider = hostOf(OPENAI_HOST_PROFILE);
    expect(boundAt(provider, "gpt-4o", "low", []).mayThink).toBe(false);
  });
});
