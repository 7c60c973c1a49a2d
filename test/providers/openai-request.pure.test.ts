import { callOf, chatOf } from "./adapter-kit.ts";
import { expect, it } from "vitest";
import { getProviderLimits } from "../../src/models/catalog/entry.ts";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { chatEndpoint } from "../../src/models/endpoints/chat.ts";
import { responsesEndpoint } from "../../src/models/endpoints/responses.ts";
import { toOpenAiChatRequest } from "../../src/models/protocols/chat/request.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";

function sent(body: JsonObject, profile: string, more: object = {}): JsonObject {
  const found = PROVIDER_HOST_PROFILES.get(profile);
  if (found === undefined) throw new Error(`no profile ${profile}`);
  const call = callOf({ upstreamId: "up", cap: 64 });
  const request = toOpenAiChatRequest({ ...call, body: chatOf(body), ...more }, found);
  if (!("body" in request)) throw new Error(request.reason);
  return request.body;
}

const AT = { header: () => undefined, query: () => undefined };
const ENDPOINTS = [
  { endpoint: chatEndpoint, body: { model: "m", messages: [{ role: "user", content: "Hi" }] } },
  { endpoint: responsesEndpoint, body: { model: "m", input: "Hi" } },
];

it.each(ENDPOINTS)(
  "a request to prewarm the cache is rejected at the $endpoint.name endpoint",
  ({ endpoint, body }) => {
    const parsed = endpoint.parse({ ...body, prompt_cache_options: { prewarm: true } }, AT);
    expect(parsed).toMatchObject({
      ok: false,
      failure: { kind: "invalid_request", param: "prompt_cache_options.prewarm" },
    });
  },
);

it.each(ENDPOINTS)(
  "cache options other than prewarm are dropped and reported at the $endpoint.name endpoint",
  ({ endpoint, body }) => {
    const prompt_cache_options = { mode: "explicit", ttl: "12h", comparison_response_id: "resp_1" };
    const parsed = endpoint.parse({ ...body, prompt_cache_options }, AT);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.failure));
    const { request, native, dropped } = parsed.value;
    const droppedFields: string[] = [...dropped];
    const onDropped = (fields: readonly string[]) => droppedFields.push(...fields);
    const core = sent(request.body, "openai", { onDropped });
    expect(JSON.stringify([core, native?.body ?? null])).not.toContain("prompt_cache_options");
    expect(droppedFields).toContain("prompt_cache_options");
    expect(native?.dropped ?? droppedFields).toContain("prompt_cache_options");
  },
);

it("a stream always requests usage, except from Mistral, which always sends usage", () => {
  const body = { messages: [], stream_options: { include_usage: false } };
  const chatting = [...PROVIDER_HOST_PROFILES].filter(([, profile]) => profile.chatFields.size > 0);
  expect(chatting).toHaveLength(PROVIDER_HOST_PROFILES.size - 2);
  for (const [profile] of chatting) {
    const request = sent(body, profile, { stream: true });
    expect(request["stream"]).toBe(true);
    const options = request["stream_options"] as { include_usage?: boolean } | undefined;
    expect(options?.include_usage).toBe(profile === "mistral" ? undefined : true);
  }
});

it("the catalog limits a provider's chat routes to one choice exactly if its profile doesn't forward n", () => {
  const routes = CATALOG.filter(({ kind }) => kind === "chat").flatMap((model) => model.routes);
  const known = routes.filter(({ provider }) => PROVIDER_HOST_PROFILES.has(provider));
  expect(known.length).toBeGreaterThan(0);
  for (const { provider, upstreamId } of known) {
    const { choices } = getProviderLimits(provider, { kind: "chat", upstreamId });
    const forwardsN = PROVIDER_HOST_PROFILES.get(provider)?.chatFields.has("n");
    expect([provider, choices]).toEqual([provider, forwardsN === true ? undefined : 1]);
  }
});

it("a request to OpenAI omits agents' extra fields in messages and tools, but keeps OpenAI's fields", () => {
  const extra = { cache_control: { type: "ephemeral" } };
  const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  const image = { type: "image_url", image_url: { url: "data:," } };
  const body = {
    messages: [
      { role: "developer", content: [{ type: "text", text: "a", ...extra }, image], ...extra },
      { role: "assistant", content: null, refusal: null, tool_calls: [{ ...call, index: 0 }] },
      { role: "tool", tool_call_id: "c", content: "ok", reasoning_content: "x" },
    ],
    tools: [{ type: "function", function: { name: "f", parameters: {}, strict: null }, ...extra }],
  };
  const clean = {
    messages: [
      { role: "developer", content: [{ type: "text", text: "a" }, image] },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c", content: "ok" },
    ],
    tools: [{ type: "function", function: { name: "f", parameters: {} } }],
  };
  expect(sent(body, "openai")).toMatchObject(clean);
  expect(JSON.stringify(sent(body, "openai"))).not.toContain("cache_control");
  expect(sent(body, "generic")).toMatchObject({ messages: [{ role: "system" }, {}, {}] });
});
