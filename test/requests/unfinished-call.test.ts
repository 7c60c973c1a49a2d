import { expect, it } from "vitest";
import type { Provider, ProviderFailure } from "../../src/models/core/provider.ts";
import { runPaidRequest } from "../../src/models/requests/paid-path.route.ts";
import type { Run, RunServices } from "../../src/models/requests/paid-request.ts";
import { RouteHealth } from "../../src/models/routing/route-health.ts";
import { success } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";
import type { Settlement } from "../../src/shared/contracts/wallet.ts";
import { asResponse, LIKELY, ROUTE, runOf, USAGE, walletOf } from "./run-fixture.ts";

const FAILED: ProviderFailure = {
  kind: "retry",
  reason: "http_502",
  fault: "request",
  spent: { usage: USAGE, output: 0 },
};
const PAUSED = {
  kind: "paused",
  pauseId: "pau_1",
  scope: "key",
  reason: "Costs",
  until: null,
} as const;
/** The price that the second route's provider charges the operator. */
const BOUGHT = { price: { input: 3_000_000, cached: 0, cacheWrite: 0, output: 0 } };

const failing: Provider["send"] = async (call) => {
  call.onDispatch?.();
  return { kind: "failure", failure: FAILED };
};

/** Returns the settlement of a run whose first call failed, and whose second call `end` ends. */
async function settlementOf(end: (run: Run, client: AbortController) => void) {
  const client = new AbortController();
  let settled: Settlement | null = null;
  const providers = new Map<string, Provider>();
  const services: Partial<RunServices> = {
    wallet: () =>
      walletOf({
        settle: async (settlement) => {
          settled = settlement;
          return success({ kind: "settled", charged: settlement.cost, shortfall: micros(0) });
        },
        void: () => Promise.reject(new Error("the first call is charged")),
      }),
    providers,
    health: new RouteHealth(),
    keysNeedingCandidates: new Set<string>(),
    numbers: {
      REQUEST_DEADLINE_S: 900,
      DRAIN_S: 0,
      UPSTREAM_HEADERS_MS: 60_000,
      UPSTREAM_FIRST_MS: 60_000,
      UPSTREAM_IDLE_MS: 60_000,
      KEEP_ALIVE_MS: 60_000,
      READER_STUCK_MS: 60_000,
    } as RunServices["numbers"],
  };
  const base = runOf(services, client.signal);
  const next = { ...ROUTE, provider: "next", bought: BOUGHT };
  const request = { ...base.request, stream: false, routes: [ROUTE, next] };
  const run = { ...base, request, respond: asResponse(() => undefined) };
  const silent: Provider["send"] = (call) => {
    call.onDispatch?.();
    end(run, client);
    return new Promise(() => undefined);
  };
  providers.set("up", { id: "up", send: failing });
  providers.set("next", { id: "next", send: silent });
  await runPaidRequest(run);
  return settled as Settlement | null;
}

it.each([
  ["a disconnect", "left", (_: Run, client: AbortController) => client.abort()],
  ["a pause", "stopped", (run: Run) => run.timer.halt(PAUSED)],
] as const)(
  "%s during a second call charges the failed first call, and records the cost of the second call",
  async (_, why, end) => {
    const settled = await settlementOf(end);
    expect(settled?.generation).toMatchObject({ provider: "up", usage: USAGE });
    const lost = { model: "up/m", cost: 3 * LIKELY };
    expect(settled?.generation?.failed).toMatchObject([{ route: "next:m", why, lost }]);
  },
);
