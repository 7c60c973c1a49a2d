import { vi } from "vitest";
import { bindingsWith } from "./client.ts";

/**
 * The gateway's secret for the mocked provider, which may appear only there. It has no known key
 * format, so only an exact comparison can remove it from a text.
 */
export const UPSTREAM_SECRET = "upstream.canary.secret";
const HOST = "https://models.upstream.test/v1";
const PROVIDERS = JSON.stringify([
  { id: "mock", base_url: HOST, profile: "generic", secret: "MOCK_API_KEY", regions: ["eu"] },
]);

const chatModel = (id: string, abilities: readonly string[], price: Record<string, number>) => ({
  id: `mock/${id}`,
  kind: "chat",
  context: 128_000,
  max_output: 4096,
  abilities,
  price,
  routes: [{ provider: "mock", upstream_id: `up-${id}` }],
});
const MODELS = JSON.stringify([
  chatModel("chat", ["tools", "vision"], { input: 1_000_000, cached: 500_000, output: 2_000_000 }),
  chatModel("blind", [], { input: 150_000, output: 600_000 }),
  {
    id: "mock/embed",
    kind: "embeddings",
    context: 8192,
    price: { input: 20_000 },
    routes: [{ provider: "mock", upstream_id: "up-embed" }],
  },
]);

/** A request to the provider. */
export type UpstreamCall = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly redirect: string;
  readonly body: Readonly<Record<string, unknown>>;
};

/**
 * Responds to every request to a provider, through `globalThis.fetch`, until mocks are restored.
 * Late calls of earlier files' objects to webhooks and peers fail.
 */
export function mockUpstream(answer: (call: UpstreamCall) => Response | Promise<Response>): {
  readonly calls: readonly UpstreamCall[];
  readonly bindings: Env;
} {
  const calls: UpstreamCall[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const isForm = request.headers.get("content-type")?.startsWith("multipart/") === true;
    const sent = isForm ? Object.fromEntries(await request.formData()) : await request.text();
    if (request.headers.get("user-agent") !== "turnpike") return new Response("", { status: 503 });
    const body = (typeof sent === "string" ? JSON.parse(sent) : sent) as UpstreamCall["body"];
    const { url, redirect } = request;
    const call = { url, redirect, headers: Object.fromEntries(request.headers), body };
    calls.push(call);
    return answer(call);
  });
  return { calls, bindings: upstreamBindings() };
}

/** Returns the tests' bindings with the provider configured, and with these changes. */
export function upstreamBindings(changes: Readonly<Record<string, unknown>> = {}): Env {
  return bindingsWith({ ...UPSTREAM_VARS, ...changes });
}

/** The variables that configure the provider. */
export const UPSTREAM_VARS = { PROVIDERS, MODELS, MOCK_API_KEY: UPSTREAM_SECRET };

export const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/** Returns a provider's completion with this usage. `undefined` omits the usage. */
export function upstreamCompletion(usage: unknown = USAGE): Response {
  return Response.json({
    id: "chatcmpl-theirs",
    object: "chat.completion",
    created: 1,
    model: "their-model-2026",
    choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
    usage,
  });
}

export function upstreamError(status: number, error: Record<string, unknown>): Response {
  return Response.json({ error }, { status });
}

/** Returns a provider's stream with these events. */
export function upstreamStream(events: readonly unknown[]): Response {
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  return new Response(`${text}data: [DONE]\n\n`, {
    headers: { "content-type": "text/event-stream" },
  });
}

/** Returns a stream of these events, each in its own network chunk, without the terminal marker. */
export function brokenStream(events: readonly object[]): Response {
  const chunks = events.map((event) =>
    new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`),
  );
  const pull = (stream: ReadableStreamDefaultController<Uint8Array>): void => {
    const next = chunks.shift();
    if (next === undefined) stream.close();
    else stream.enqueue(next);
  };
  const body = new ReadableStream({ pull }, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
