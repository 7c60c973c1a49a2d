import { chatOf } from "./adapter-kit.ts";
import { expect, it } from "vitest";
import { failover } from "../../src/models/routing/failover.ts";
import type { AttemptCandidate } from "../../src/models/routing/attempt.ts";
import type { FailoverOptions } from "../../src/models/routing/failover.ts";
import type { Provider, ProviderCall } from "../../src/models/core/provider.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import { GOOD, RESET, never } from "./failover-fixture.ts";

/** Returns the reported requests of these routes, named a, b and so on. */
async function collectReports(
  sends: readonly Provider["send"][],
  more: Partial<FailoverOptions<AttemptCandidate>> = {},
) {
  const reports: unknown[] = [];
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
      onAsked: (report) => reports.push(report),
      ...more,
    },
  );
  return reports;
}

const working = (call: ProviderCall) => {
  call.onDispatch?.();
  return Promise.resolve(GOOD);
};
const idle = () => Promise.resolve(RESET);

it("failover counts a route as called only after the adapter reports that it sent the request", async () => {
  expect(await collectReports([working])).toMatchObject([
    null,
    { candidate: { provider: { id: "a" } }, attempts: 1 },
  ]);
  expect(await collectReports([idle, working])).toMatchObject([
    null,
    null,
    { candidate: { provider: { id: "b" } }, attempts: 2 },
  ]);
});

it("failover counts no call if the time limit passes before the adapter sends the request", async () => {
  const late = Promise.withResolvers<ProviderCall>();
  const slow: Provider["send"] = (call) => (late.resolve(call), never);
  const next: Provider["send"] = async () => {
    (await late.promise).onDispatch?.();
    return GOOD;
  };
  expect(await collectReports([slow, next], { headersMs: 1 })).toEqual([null, null]);
});
