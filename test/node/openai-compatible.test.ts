import { callOf, chatOf } from "../providers/adapter-kit.ts";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { afterTimeout } from "../../src/shared/timers.ts";
import { failover } from "../../src/models/routing/failover.ts";
import type { FailoverOptions } from "../../src/models/routing/failover.ts";
import { openAiCompatible } from "../../src/models/providers/openai-compatible.ts";
import { OPENAI_HOST_PROFILE } from "../../src/models/providers/profiles/openai.ts";
import type { ProviderResult, ChatCall, StreamEvent } from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import { startOpenAiMock } from "../fixtures/openai-mock.ts";
import type { OpenAiMock } from "../fixtures/openai-mock.ts";

const SECRET = "sk-canary-7f3b2c1d9e8a";
const USAGE = { input: 8, cacheRead: 4, cacheWrite: 0, output: 3, reasoning: 0 };
let mock: OpenAiMock;
beforeAll(async () => {
  mock = await startOpenAiMock();
});
afterEach(() => mock.script(null));
afterAll(() => mock.close());

function host() {
  return { id: "openai", baseUrl: mock.url, profile: OPENAI_HOST_PROFILE, secret: SECRET };
}

function send(
  upstreamId: string,
  more: Partial<Omit<ChatCall, "kind">> = {},
): Promise<ProviderResult> {
  return openAiCompatible(host()).send({
    kind: "chat",
    upstreamId,
    body: { model: upstreamId, messages: [{ role: "user", content: "Hi" }] },
    stream: false,
    cap: 100,
    signal: new AbortController().signal,
    ...more,
  });
}

async function events(upstreamId: string, body = {}): Promise<StreamEvent[]> {
  const answer = await send(upstreamId, { stream: true, ...body });
  if (answer.kind !== "stream") throw new Error(`no stream but ${JSON.stringify(answer)}`);
  const all: StreamEvent[] = [];
  for (;;) {
    const batch = await answer.events.next();
    if (batch === null) return all;
    all.push(...batch);
  }
}

function serve(ids: readonly string[], more: Partial<FailoverOptions> = {}, stream = true) {
  const candidates = ids.map((upstreamId) => {
    return { provider: openAiCompatible(host()), upstreamId, cap: 100 };
  });
  const request = { kind: "chat" as const, body: { model: "m", messages: [] }, stream };
  return failover(candidates, request, {
    health: new RouteHealth(),
    now: () => 0,
    signal: new AbortController().signal,
    headersMs: 5000,
    firstMs: 5000,
    pauseMs: () => 0,
    ...more,
  });
}

it("the OpenAI adapter sends a completion with its cap over HTTP, and reads its usage", async () => {
  const answer = await send("gpt-4o");
  expect(answer).toMatchObject({
    kind: "json",
    usage: USAGE,
    body: { object: "chat.completion", choices: [{ message: { content: "Hello" } }] },
  });
  const sent = mock.requests.at(-1);
  expect(sent?.json).toMatchObject({ model: "gpt-4o", max_completion_tokens: 100 });
  expect(sent?.headers.authorization).toBe(`Bearer ${SECRET}`);
});

it("the OpenAI adapter requests usage for a stream, and emits the finish reason, usage and end", async () => {
  const all = await events("gpt-4o");
  expect(mock.requests.at(-1)?.json["stream_options"]).toMatchObject({ include_usage: true });
  expect(all.map((event) => event.kind)).toEqual([
    "chunk",
    "chunk",
    "text",
    "chunk",
    "usage",
    "end",
  ]);
  expect(all.at(-2)).toEqual({ kind: "usage", usage: USAGE });
});

it("the OpenAI adapter ends a stream once, even if it has two [DONE] and later chunks", async () => {
  const kinds = (await events("mock-two-dones")).map((event) => event.kind);
  expect(kinds).toEqual(["chunk", "chunk", "text", "chunk", "usage", "end"]);
});

it("the OpenAI adapter reads usage from the last chunk, and uses the last if a stream reports usage twice", async () => {
  const onFinish = await events("mock-usage-on-finish");
  expect(onFinish.at(-2)).toEqual({ kind: "usage", usage: USAGE });
  expect(JSON.stringify(onFinish.filter((event) => event.kind === "chunk"))).not.toContain("usage");
  const twice = (await events("mock-usage-twice")).filter((event) => event.kind === "usage");
  expect(twice.map((event) => event.usage.output)).toEqual([1, 3]);
});

it("the OpenAI adapter keeps a tool call's name and arguments, streamed and not", async () => {
  const tools = [{ type: "function", function: { name: "weather" } }];
  const body = { body: chatOf({ messages: [], tools }) };
  expect(await send("gpt-4o", body)).toMatchObject({
    body: { choices: [{ finish_reason: "tool_calls", message: { content: null } }] },
  });
  const text = JSON.stringify(await events("gpt-4o", body));
  expect(text).toContain('"name":"weather","arguments":""');
  expect(text).toContain('"finish_reason":"tool_calls"');
});

it("the OpenAI adapter maps each kind of provider failure, and keeps none of its text", async () => {
  const names = ["401", "404", "quota", "408", "500", "302", "html", "bad-json", "reset"];
  const answers = await Promise.all(names.map((name) => send(`mock-${name}`)));
  expect(JSON.stringify(answers)).not.toMatch(/canary|openai|Incorrect|elsewhere/);
  const kinds = answers.map((answer) => (answer.kind === "failure" ? answer.failure.kind : ""));
  expect(Object.fromEntries(names.map((name, at) => [name, kinds[at]]))).toEqual({
    401: "disabled",
    404: "disabled",
    quota: "disabled",
    408: "retry",
    500: "retry",
    302: "retry",
    html: "retry",
    "bad-json": "retry",
    reset: "retry",
  });
  const busy = await Promise.all(["429", "503", "529"].map((name) => send(`mock-${name}`)));
  expect(busy).toMatchObject(busy.map(() => ({ failure: { kind: "overloaded" } })));
  expect(await send("mock-429")).toMatchObject({ failure: { retryAfterMs: 7000 } });
});

it("the OpenAI adapter does not follow a redirect", async () => {
  const before = mock.requests.length;
  await send("mock-302");
  expect(mock.requests.length - before).toBe(1);
});

it("the OpenAI adapter returns a rejection without account data, and OpenAI's code for a too long prompt", async () => {
  const refused = await send("mock-400");
  expect(refused).toMatchObject({ failure: { kind: "refused", param: "temperature" } });
  expect(JSON.stringify(refused)).not.toMatch(/org-|openai\.com/);
  expect(await send("mock-context")).toMatchObject({
    failure: {
      kind: "refused",
      code: "context_length_exceeded",
      message: expect.stringContaining("maximum context length"),
    },
  });
});

it("the OpenAI adapter stops reading a gzip bomb, and closes its connection", async () => {
  expect(await send("mock-gzip-bomb")).toMatchObject({ failure: { reason: "body_too_large" } });
});

it("the OpenAI adapter ends a stream with an error at a line of 10 MB", async () => {
  const all = await events("mock-huge-line");
  expect(all.at(-1)).toMatchObject({
    kind: "error",
    failure: { kind: "refused", reason: "event_too_large", spent: { usage: null } },
  });
});

it("the OpenAI adapter emits a mid-stream error without the provider's text", async () => {
  const all = await events("mock-error-mid");
  expect(all.map((event) => event.kind)).toEqual(["chunk", "error"]);
  expect(JSON.stringify(all)).not.toContain("canary");
});

it("the OpenAI adapter throws if the connection is cut mid-stream", async () => {
  await expect(events("mock-cut")).rejects.toThrow(/terminated|reset/i);
});

it("the OpenAI adapter returns requested base64 vectors in input order", async () => {
  const body = { input: ["a", "b"], encoding_format: "base64", dimensions: 2 };
  const answer = await openAiCompatible(host()).send(
    callOf({ kind: "embeddings", upstreamId: "emb", body }),
  );
  expect(answer).toMatchObject({
    kind: "json",
    usage: { input: 8, output: 0 },
    body: { data: [{ index: 0, embedding: expect.any(String) }, { index: 1 }] },
  });
});

it("a failed first route stays hidden if the second works: reset, stall, error or no output", async () => {
  const bad = ["reset", "stall", "silent", "error-first", "empty-stream", "html", "500"];
  const all = await Promise.all(
    bad.map((name) => serve([`mock-${name}`, "gpt-4o"], hurriedAtFirst())),
  );
  expect(all).toMatchObject(bad.map(() => ({ ok: true, value: { index: 1, attempts: 2 } })));
  for (const served of all) {
    if (served.ok && served.value.answer.kind === "stream") served.value.answer.events.cancel();
  }
});

/** The first route has little time; the one after it as much as it needs. */
function hurriedAtFirst(): Partial<FailoverOptions> {
  let asked = 0;
  return {
    headersMs: 400,
    firstMs: 400,
    onAsked: (one) => (asked += Number(one === null)),
    after: (ms, run) => (asked === 1 ? afterTimeout(ms, run) : () => undefined),
  };
}

it("an abandoned provider request is closed", async () => {
  let closed = false;
  mock.script((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write(": waiting\n\n");
    response.on("close", () => {
      closed = true;
    });
  });
  expect(await serve(["m"], { firstMs: 20 })).toMatchObject({ ok: false });
  await expect.poll(() => closed).toBe(true);
});

it("failover stops the attempt when the request ends, and starts no other", async () => {
  const run = new AbortController();
  const before = mock.requests.length;
  mock.script(() => run.abort());
  expect(await serve(["m", "m2"], { signal: run.signal })).toMatchObject({
    ok: false,
    failure: { kind: "upstream_error" },
  });
  expect(mock.requests.length - before).toBe(1);
});
