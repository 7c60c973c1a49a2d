import { chatOf } from "./adapter-kit.ts";
import { afterEach, expect, it, vi } from "vitest";
import { failover } from "../../src/models/routing/failover.ts";
import type { FailoverOptions } from "../../src/models/routing/failover.ts";
import { postRequest, sendCall } from "../../src/models/core/http-provider.ts";
import type { ProviderProtocol } from "../../src/models/core/http-provider.ts";
import type { Provider, ProviderCall } from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import { sandboxProvider } from "../../src/models/providers/sandbox/sandbox.ts";
import { workersAi } from "../../src/models/providers/workers-ai.ts";
import { callOf, mockNetwork } from "./adapter-kit.ts";
import { GOOD, RESET, never } from "./failover-fixture.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** Returns the reported requests of these routes, named a, b and so on. */
async function saidOf(sends: readonly Provider["send"][], more: Partial<FailoverOptions> = {}) {
  const said: unknown[] = [];
  const candidates = sends.map((send, at) => ({
    provider: { id: "ab".charAt(at), send },
    upstreamId: "m",
    cap: 9,
  }));
  await failover(
    candidates,
    { kind: "chat", body: chatOf({}), stream: false },
    {
      health: new RouteHealth(),
      now: () => 0,
      signal: new AbortController().signal,
      headersMs: 5000,
      firstMs: 5000,
      pauseMs: () => 0,
      onAsked: (asked) => said.push(asked),
      ...more,
    },
  );
  return said;
}

const working = (call: ProviderCall) => {
  call.onDispatch?.();
  return Promise.resolve(GOOD);
};
const idle = () => Promise.resolve(RESET);

it("an adapter reports that it sends a request to a route immediately before sending it", async () => {
  expect(await saidOf([working])).toMatchObject([null, { index: 0, attempts: 1 }]);
  expect(await saidOf([idle, working])).toMatchObject([null, null, { index: 1, attempts: 2 }]);
});

it("a request whose time limit passed before it was sent isn't reported as sent", async () => {
  const late = Promise.withResolvers<ProviderCall>();
  const slow: Provider["send"] = (call) => (late.resolve(call), never);
  const next: Provider["send"] = async () => {
    (await late.promise).onDispatch?.();
    return GOOD;
  };
  expect(await saidOf([slow, next], { headersMs: 1 })).toEqual([null, null]);
});

it("an adapter reports the sending of a request just before it leaves", async () => {
  const asked: string[] = [];
  const call = (): ProviderCall => ({ ...callOf(), onDispatch: () => asked.push("dispatch") });
  const wire = {
    chat: {
      send: (one: ProviderCall) =>
        postRequest(one, { url: "https://up.test/", headers: {}, body: "" }),
    },
    failure: () => ({ kind: "retry", reason: "500" }),
  } as unknown as ProviderProtocol;
  const requests = mockNetwork({ status: 500, headers: {}, body: "" });
  await sendCall(wire, { ...call(), onDispatch: () => asked.push(`${requests.length} before`) });
  expect([asked, requests.length]).toEqual([["0 before"], 1]);

  const run = () => {
    asked.push("run");
    return Promise.resolve(Response.json({}));
  };
  asked.length = 0;
  await workersAi({ run }).send(call());
  expect(asked).toEqual(["dispatch", "run"]);
  asked.length = 0;
  await sandboxProvider().send({ ...call(), upstreamId: "echo" });
  expect(asked).toEqual(["dispatch"]);
});
