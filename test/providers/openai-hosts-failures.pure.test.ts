import { expect, it, vi } from "vitest";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import type { Provider } from "../../src/models/core/provider.ts";
import { HOST_FAILURES } from "../fixtures/hosts-failures.ts";
import { HOST_REPLIES } from "../fixtures/hosts-replies.ts";
import { CANARY, CANARY_TEXT } from "../fixtures/reply-scenarios.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { answerTo, callOf, eventsOf, mockNetwork } from "./adapter-kit.ts";

const SECRETS = [CANARY.key, CANARY.host, CANARY.account];

function providerOf(name: string): Provider {
  const profile = PROVIDER_HOST_PROFILES.get(name);
  if (profile === undefined) throw new Error(`no profile ${name}`);
  return createOpenAiCompatibleProvider({
    id: name,
    baseUrl: `https://${CANARY.host}/v1`,
    profile,
    secret: CANARY.key,
  });
}

const embeds = (name: string) => PROVIDER_HOST_PROFILES.get(name)?.chatFields.size === 0;
const RANK = { query: "a", documents: ["b"], top_n: 1 };
const callFor = (name: string) => {
  if (name === "jina") return { kind: "rerank" as const, body: RANK };
  return embeds(name) ? { kind: "embeddings" as const, body: { input: "a" } } : {};
};

it.each(HOST_FAILURES)(
  "the OpenAI-compatible adapter maps the failure of $profile: $status $body",
  async ({ profile, status, headers, body, want }) => {
    const reply = { status, headers: { "content-type": "application/json", ...headers }, body };
    for (const stream of embeds(profile) ? [false] : [false, true]) {
      const { answer } = await answerTo(
        providerOf(profile),
        { ...callFor(profile), stream },
        reply,
      );
      expect(answer).toMatchObject({ kind: "failure", failure: want });
      const text = JSON.stringify(answer);
      for (const secret of SECRETS) expect(text).not.toContain(secret);
      const isRefused = answer.kind === "failure" && answer.failure.kind === "refused";
      expect(!isRefused && text.includes(CANARY.text)).toBe(false);
      vi.restoreAllMocks();
    }
  },
);

it("the fixtures contain recorded failures for every provider profile", () => {
  expect(new Set(HOST_FAILURES.map((failure) => failure.profile))).toEqual(
    new Set(PROVIDER_HOST_PROFILES.keys()),
  );
});

it.each(HOST_REPLIES)(
  "the OpenAI-compatible adapter reports an early or mid-stream error, and emits no end event after a cut: $dialect.profile",
  async (replies) => {
    const provider = providerOf(replies.dialect.profile);
    const first = await eventsOf(provider, {}, replies.errorFirst);
    expect(first).toMatchObject([{ kind: "error", failure: { kind: "retry", reason: "502" } }]);
    const mid = await eventsOf(provider, {}, replies.errorMid);
    expect(mid.at(-1)).toMatchObject({ kind: "error", failure: { reason: "502" } });
    expect(mid.length).toBeGreaterThan(1);
    const cut = await eventsOf(provider, {}, replies.cut);
    expect(cut.some((event) => event.kind === "end" || event.kind === "error")).toBe(false);
    const text = JSON.stringify([first, mid, cut]);
    for (const secret of [...SECRETS, CANARY.text]) expect(text).not.toContain(secret);
  },
);

it.each([
  ["openrouter", { error: { code: 502, message: CANARY_TEXT, metadata: {} } }, "retry"],
  ["openrouter", { error: { code: 429, message: CANARY_TEXT } }, "overloaded"],
  ["mistral", { object: "error", message: CANARY_TEXT, type: "internal", code: "3000" }, "retry"],
  [
    "cerebras",
    { message: CANARY_TEXT, type: "too_many_requests_error", code: "queue_exceeded" },
    "overloaded",
  ],
  ["xai", { code: "The service is unavailable", error: CANARY_TEXT }, "retry"],
])(
  "the OpenAI-compatible adapter maps, for %s, a 200 with the error %j",
  async (name, body, kind) => {
    const provider = providerOf(name);
    const json = { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const streamed: RawReply = {
      headers: { "content-type": "text/event-stream" },
      body: `data: ${JSON.stringify(body)}\n\n`,
    };
    for (const stream of [false, true]) {
      const { answer } = await answerTo(provider, { stream }, json);
      expect(answer).toMatchObject({ kind: "failure", failure: { kind } });
      expect(JSON.stringify(answer)).not.toContain("canary");
      vi.restoreAllMocks();
    }
    const events = await eventsOf(provider, {}, streamed);
    expect(events).toMatchObject([{ kind: "error", failure: { kind } }]);
    expect(JSON.stringify(events)).not.toContain("canary");
  },
);

it("the OpenAI-compatible adapter disables a route before sending if the provider lacks the endpoint", async () => {
  const requests = mockNetwork([]);
  const voyage = await providerOf("voyage").send(callOf());
  const groq = await providerOf("groq").send(callOf({ kind: "embeddings", body: { input: "a" } }));
  expect([voyage, groq]).toMatchObject([
    { failure: { kind: "disabled" } },
    { failure: { kind: "disabled" } },
  ]);
  expect(requests).toEqual([]);
});
