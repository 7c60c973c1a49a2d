import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { afterTimeout } from "../../src/shared/timers.ts";
import { failover } from "../../src/models/routing/failover.ts";
import type { AttemptCandidate } from "../../src/models/routing/attempt.ts";
import type { FailoverOptions } from "../../src/models/routing/failover.ts";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { OPENAI_HOST_PROFILE } from "../../src/models/providers/profiles.ts";
import type { ProviderResult, ChatCall, StreamEvent } from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockProvider } from "../fixtures/openai-mock.ts";

const SECRET = "sk-canary-7f3b2c1d9e8a";
let mock: MockProvider;
beforeAll(async () => {
  mock = await startMockProvider();
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
  return createOpenAiCompatibleProvider(host()).send({
    kind: "chat",
    upstreamId,
    body: { model: upstreamId, messages: [{ role: "user", content: "Hi" }] },
    stream: false,
    cap: 100,
    signal: new AbortController().signal,
    ...more,
  });
}

async function events(upstreamId: string): Promise<StreamEvent[]> {
  const answer = await send(upstreamId, { stream: true });
  if (answer.kind !== "stream") throw new Error(`no stream but ${JSON.stringify(answer)}`);
  const all: StreamEvent[] = [];
  for (;;) {
    const batch = await answer.events.next();
    if (batch === null) return all;
    all.push(...batch);
  }
}

function serve(
  ids: readonly string[],
  more: Partial<FailoverOptions<AttemptCandidate>> = {},
  stream = true,
) {
  const candidates = ids.map((upstreamId) => {
    return { provider: createOpenAiCompatibleProvider(host()), upstreamId, cap: 100 };
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

it("the OpenAI adapter maps each kind of provider failure, and hides the provider's text", async () => {
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

it("the OpenAI adapter stops reading a gzip bomb, and closes the connection", async () => {
  expect(await send("mock-gzip-bomb")).toMatchObject({ failure: { reason: "body_too_large" } });
});

it("the OpenAI adapter ends a stream with an error at a line of 10 MB", async () => {
  const all = await events("mock-huge-line");
  expect(all.at(-1)).toMatchObject({
    kind: "error",
    failure: { kind: "refused", reason: "event_too_large", spent: { usage: null } },
  });
});

it("the OpenAI adapter throws if the connection is cut mid-stream", async () => {
  await expect(events("mock-cut")).rejects.toThrow(/terminated|reset/i);
});

it("a failure of the first route stays hidden if the second route works: reset, stall, error or no output", async () => {
  const bad = ["reset", "stall", "silent", "error-first", "empty-stream", "html", "500"];
  const all = await Promise.all(
    bad.map((name) => serve([`mock-${name}`, "gpt-4o"], hurriedAtFirst())),
  );
  expect(all).toMatchObject(
    bad.map(() => ({ ok: true, value: { candidate: { upstreamId: "gpt-4o" }, attempts: 2 } })),
  );
  for (const served of all) {
    if (served.ok && served.value.answer.kind === "stream") served.value.answer.events.cancel();
  }
});

/** Gives the first route little time and later ones enough. */
function hurriedAtFirst(): Partial<FailoverOptions<AttemptCandidate>> {
  let attempts = 0;
  return {
    headersMs: 400,
    firstMs: 400,
    onAsked: (one) => (attempts += Number(one === null)),
    after: (ms, run) => (attempts === 1 ? afterTimeout(ms, run) : () => undefined),
  };
}

it("the connection of an abandoned provider request is closed", async () => {
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

it("failover stops the current attempt when the request ends, and starts no further attempt", async () => {
  const run = new AbortController();
  const before = mock.requests.length;
  mock.script(() => run.abort());
  expect(await serve(["m", "m2"], { signal: run.signal })).toMatchObject({
    ok: false,
    failure: { kind: "upstream_error" },
  });
  expect(mock.requests.length - before).toBe(1);
});
