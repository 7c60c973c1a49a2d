import { beforeEach, expect, it, vi } from "vitest";
import { bindingsWith, openAccount, send } from "./client.ts";

type Line = Readonly<Record<string, unknown>>;
let lines: Line[] = [];
let nowMs = 0;
beforeEach(() => {
  lines = [];
  nowMs = Date.now();
  for (const level of ["log", "warn"] as const) {
    vi.spyOn(console, level).mockImplementation((line: string) => {
      lines.push(JSON.parse(line) as Line);
    });
  }
});

const COUNT = 20;

/** Sends one request several times within a second, and once more a second later. */
async function storm(request: () => Promise<Response>): Promise<Response> {
  lines = [];
  const clock = vi.spyOn(Date, "now").mockImplementation(() => nowMs);
  for (let i = 0; i < COUNT; i++) {
    await request();
  }
  nowMs += 1000;
  const last = await request();
  clock.mockRestore();
  return last;
}

const ofRequests = (): readonly Line[] =>
  lines.filter(({ event }) => event === "request" || event === "requests_refused");

it("the request log summarizes twenty 401 or 404 responses of a second in two lines with counts", async () => {
  const { key } = await openAccount();
  const bindings = bindingsWith({ LOG_REQUESTS: "failures" });
  const forged = await storm(() => send("/v1/models", { key: "x".repeat(50), bindings }));
  expect(forged.status).toBe(401);
  expect(ofRequests()).toMatchObject([
    { event: "requests_refused", invalid_api_key: 1 },
    {
      event: "requests_refused",
      invalid_api_key: COUNT,
      last_request_id: forged.headers.get("x-request-id"),
    },
  ]);
  const separateBindings = bindingsWith({ LOG_REQUESTS: "failures" });
  const missing = await storm(() => send("/v1/models/nobody", { key, bindings: separateBindings }));
  expect(missing.status).toBe(404);
  expect(ofRequests()).toMatchObject([{ model_not_found: 1 }, { model_not_found: COUNT }]);
});

it("the request log summarizes twenty 429 responses in two lines with the last organization's ID", async () => {
  const { key, orgId } = await openAccount({ rpmLimit: 1 });
  const bindings = bindingsWith({ LOG_REQUESTS: "failures" });
  const body = { model: "sandbox/echo", messages: [{ role: "user", content: "Hello" }] };
  const sendRequest = () => send("/v1/chat/completions", { key, body, bindings });
  expect((await sendRequest()).status).toBe(200);
  const limited = await storm(sendRequest);
  expect(limited.status).toBe(429);
  await expect
    .poll(() => ofRequests().reduce((sum, line) => sum + Number(line["rate_limited"] ?? 0), 0))
    .toBe(COUNT + 1);
  expect(ofRequests()).toHaveLength(2);
  expect(ofRequests()[1]).toMatchObject({ last_org_id: orgId });
});

it("the request log summarizes the invalid signatures of a second in two lines with counts", async () => {
  const bindings = bindingsWith({ LOG_REQUESTS: "failures" });
  const headers = { signature: "sig=:AAAA:", "signature-input": "sig=()" };
  const refused = await storm(() => send("/internal/v1/lookup", { headers, body: {}, bindings }));
  expect(refused.status).toBe(404);
  expect(lines.filter(({ event }) => String(event).startsWith("request"))).toEqual([]);
  expect(lines.filter(({ event }) => event === "peer_refused")).toMatchObject([
    { count: 1 },
    { count: COUNT },
  ]);
});

it("the request log has a line for each 400, and for each request if LOG_REQUESTS is all", async () => {
  const { key } = await openAccount();
  const badRequest = {
    key,
    body: { model: 7 },
    bindings: bindingsWith({ LOG_REQUESTS: "failures" }),
  };
  await storm(() => send("/v1/chat/completions", badRequest));
  expect(ofRequests().map(({ status }) => status)).toEqual(Array(COUNT + 1).fill(400));
  const all = bindingsWith({ LOG_REQUESTS: "all" });
  await storm(() => send("/v1/models", { key: "x", bindings: all }));
  expect(ofRequests().map(({ status }) => status)).toEqual(Array(COUNT + 1).fill(401));
});
