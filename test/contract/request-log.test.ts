import { beforeEach, expect, it, vi } from "vitest";
import { bindingsWith, chat, openAccount, send } from "./client.ts";

let lines: string[] = [];
beforeEach(() => {
  lines = [];
  vi.spyOn(console, "log").mockImplementation((line: string) => void lines.push(line));
});

const logged = (): readonly unknown[] =>
  lines
    .map((line) => JSON.parse(line) as { event: string; status: number })
    .filter(({ event }) => event === "request")
    .map(({ status }) => status);

it("the request log contains only rejected and failed requests by default", async () => {
  for (const bindings of [
    bindingsWith({ LOG_REQUESTS: undefined }),
    bindingsWith({ LOG_REQUESTS: "failures" }),
  ]) {
    lines = [];
    await send("/healthz", { bindings });
    await send("/v1/%", { bindings });
    expect(logged()).toEqual([400]);
  }
});

it("the request log contains every request if LOG_REQUESTS is all", async () => {
  const bindings = bindingsWith({ LOG_REQUESTS: "all" });
  await send("/healthz", { bindings });
  await send("/v1/models", { bindings });
  expect(logged()).toEqual([200, 401]);
});

it("the request log contains one line per paid request, with provider, tokens and cost, after the charge", async () => {
  const { key, keyId, orgId } = await openAccount();
  for (const stream of [false, true]) {
    lines = [];
    const points: AnalyticsEngineDataPoint[] = [];
    const ANALYTICS = {
      writeDataPoint: (point: AnalyticsEngineDataPoint) => void points.push(point),
    };
    const bindings = bindingsWith({ LOG_REQUESTS: "all", ANALYTICS });
    const response = await chat(key, { stream }, { bindings });
    await response.text();
    await expect.poll(logged).toEqual([200]);
    const line = lines.map((one) => JSON.parse(one) as Record<string, unknown>).find(isRequest);
    expect(line).toEqual({
      event: "request",
      request_id: response.headers.get("x-request-id"),
      method: "POST",
      route: "/v1/chat/completions",
      status: 200,
      duration_ms: expect.any(Number) as number,
      org_id: orgId,
      key_id: keyId,
      failure: null,
      model: "sandbox/echo",
      streamed: stream,
      provider: "sandbox",
      upstream_id: "echo",
      attempts: 1,
      first_byte_ms: expect.any(Number) as number,
      input_tokens: 5,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: 2,
      reasoning_tokens: 0,
      cost_micro: 9,
      estimated: false,
      finish_reason: "stop",
    });
    expect(points).toMatchObject([
      { indexes: [orgId], blobs: ["eu", "sandbox/echo", "sandbox", "chat", String(stream)] },
    ]);
    expect(points[0]?.doubles?.slice(0, 2)).toEqual([9, 5]);
  }
});

it("the request log gives the reason why a paid request was not charged", async () => {
  const { key } = await openAccount();
  lines = [];
  await (await chat(key, { model: "sandbox/status-500" })).text();
  await expect.poll(logged).toEqual([502]);
  const line = lines.map((one) => JSON.parse(one) as Record<string, unknown>).find(isRequest);
  expect(line).toMatchObject({ failure: "upstream_error", not_charged: "upstream_error" });
});

function isRequest(line: Record<string, unknown>): boolean {
  return line["event"] === "request";
}
