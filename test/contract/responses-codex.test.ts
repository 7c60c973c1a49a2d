import { beforeAll, describe, expect, it } from "vitest";
import codexRequest from "../fixtures/codex-request.json";
import { eventsOf, followResponse } from "../protocols/responses/follow.ts";
import type { AnyResponse } from "../protocols/responses/sdk-schemas.ts";
import { openAccount, send } from "./client.ts";
import { mockOpenAi } from "./responses-client.ts";
import { upstreamError } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const CODEX = { originator: "codex_exec", accept: "text/event-stream" };

function sendAsCodex(
  apiKey: string,
  fields: Record<string, unknown> = {},
  more: { readonly headers?: Record<string, string>; readonly bindings?: Env } = {},
): Promise<Response> {
  const body = { model: "sandbox/echo", input: "Hello there", stream: true, ...fields };
  return send("/v1/responses", { key: apiKey, body, headers: CODEX, ...more });
}

/** Returns the failed response of an error within a stream. */
async function failed(answer: Response): Promise<AnyResponse> {
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(answer.headers.get("cache-control")).toContain("no-transform");
  const { response } = followResponse(eventsOf(await answer.text()));
  const id = answer.headers.get("x-request-id")?.slice("req_".length);
  expect(response).toMatchObject({ status: "failed", id: `resp_${id}`, usage: null, output: [] });
  return response;
}

describe("a stream of POST /v1/responses to Codex", () => {
  it("ends Codex's turn with insufficient_quota if the balance is insufficient", async () => {
    const { key: poor } = await openAccount({ credits: 0 });
    const response = await sendAsCodex(poor);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect((await failed(response)).error).toMatchObject({
      code: "insufficient_quota",
      message: expect.stringMatching(/^Insufficient credits/),
    });
  });

  it("reports the wait in seconds after a per-minute limit is reached", async () => {
    const { key: slow } = await openAccount({ rpmLimit: 1 });
    expect((await sendAsCodex(slow)).status).toBe(200);
    const response = await sendAsCodex(slow);
    const wait = response.headers.get("retry-after");
    expect((await failed(response)).error).toMatchObject({
      code: "rate_limit_exceeded",
      message: expect.stringContaining(`Please try again in ${wait}s.`),
    });
  });

  it("reports a context that is too long with the error code that makes Codex compact the context", async () => {
    const error = { message: "Too long.", code: "context_length_exceeded", param: "input" };
    const { bindings } = mockOpenAi(() => upstreamError(400, error));
    const response = await sendAsCodex(key, { model: "mock/own" }, { bindings });
    expect((await failed(response)).error?.code).toBe("context_length_exceeded");
  });

  it("contains an error event for the user agent of Codex's terminal app as well", async () => {
    const { key: poor } = await openAccount({ credits: 0 });
    const headers = { "user-agent": "codex-tui/0.169.0 (Linux)", accept: "text/event-stream" };
    const { error } = await failed(await sendAsCodex(poor, {}, { headers }));
    expect(error?.code).toBe("insufficient_quota");
  });

  it.each([
    [{ model: "no/such" }, 404],
    [{ input: [] }, 400],
  ])("turns into an error response without a stream for %o", async (fields, status) => {
    expect((await sendAsCodex(key, fields)).status).toBe(status);
  });
});

it.each([
  { accept: "text/event-stream" },
  { originator: "codex_exec", accept: "application/json" },
  { originator: "my-codex_exec", accept: "text/event-stream" },
])(
  "POST /v1/responses returns an error status instead of a stream to clients other than Codex: %o",
  async (headers) => {
    const { key: poor } = await openAccount({ credits: 0 });
    expect((await sendAsCodex(poor, {}, { headers })).status).toBe(402);
  },
);

it("GET and DELETE of a stored response return an error status even to Codex", async () => {
  const { key: slow } = await openAccount({ rpmLimit: 1 });
  expect((await sendAsCodex(slow)).status).toBe(200);
  for (const method of ["GET", "DELETE"]) {
    const response = await send("/v1/responses/resp_1", { key: slow, method, headers: CODEX });
    expect([method, response.status]).toEqual([method, 429]);
  }
});

it("POST /v1/responses accepts all tools of Codex 0.169, and reports web search as dropped", async () => {
  const answer = await sendAsCodex(key, { ...codexRequest, model: "sandbox/agent" });
  expect([answer.status, answer.headers.get("x-dropped")]).toEqual([200, "tools.web_search"]);
  const { response } = followResponse(eventsOf(await answer.text()));
  expect(response.status).toBe("completed");
  expect(namesOf(response.tools)).toEqual(namesOf(codexRequest.tools));
  const { bindings, calls } = mockOpenAi(() => upstreamError(400, { message: "Seen." }));
  await sendAsCodex(key, { ...codexRequest, model: "mock/own" }, { bindings });
  await sendAsCodex(key, { ...codexRequest, model: "mock/other" }, { bindings });
  const served = namesOf(codexRequest.tools.filter(({ type }) => type !== "web_search"));
  const [own, other] = calls.map(({ body }) => namesOf(body["tools"] as readonly Tool[]));
  expect([own, other]).toEqual([served, served]);
});

type Tool = {
  readonly type: string;
  readonly name?: string;
  readonly function?: { readonly name: string };
  readonly tools?: readonly Tool[];
};

/**
 * Returns the name of each tool. Tools in a namespace have the flat name for protocols without
 * namespaces.
 */
function namesOf(tools: readonly Tool[]): string[] {
  return tools.flatMap(({ type, name = type, function: core, tools: inner }) =>
    inner === undefined ? [core?.name ?? name] : namesOf(inner).map((one) => `${name}__${one}`),
  );
}

describe("a POST /v1/responses request without an output cap", () => {
  it("gets the model's maximum output as its cap, while a chat completion gets the default cap", async () => {
    const { bindings, calls } = mockOpenAi(() => upstreamError(400, { message: "Seen." }));
    const vars = { ...bindings, DEFAULT_MAX_OUTPUT: "300" } as Env;
    await sendAsCodex(key, { model: "mock/own" }, { bindings: vars });
    await sendAsCodex(key, { model: "mock/own", max_output_tokens: 40 }, { bindings: vars });
    const body = { model: "mock/other", messages: [{ role: "user", content: "Hello" }] };
    await send("/v1/chat/completions", { key, body, bindings: vars });
    expect(calls.map(({ body: sent }) => sent["max_output_tokens"] ?? sent["max_tokens"])).toEqual([
      4096, 40, 300,
    ]);
  });

  it("gets an output cap that half of the available balance covers", async () => {
    const { key: poor } = await openAccount({ credits: 4000 });
    const { bindings, calls } = mockOpenAi(() => upstreamError(400, { message: "Seen." }));
    const response = await sendAsCodex(poor, { model: "mock/own" }, { bindings });
    await response.text();
    const cap = Number(calls[0]?.body["max_output_tokens"]);
    expect(cap).toBeGreaterThan(800);
    expect(cap).toBeLessThanOrEqual(1000); // $0.002 at $2 per million tokens
  });
});
