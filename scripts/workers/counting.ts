/**
 * The gateway with counters for the bench: object calls, rows of objects and D1, and log lines. GET
 * /__counts returns and resets them. Send one request at a time, because the order tells which work
 * came before the provider call.
 */
import worker, * as gateway from "../../src/index.ts";
import { wrapObject, cachedEnv } from "./around.ts";
import { countedD1, countedNamespace, countLog, countStorage } from "./counters.ts";
import { noCounts } from "./counts.ts";

const counts = noCounts();
const atStart = noCounts(); // counts of the request in progress
const afterwards = noCounts(); // counts of calls outside of requests, such as for metrics
const upstream = globalThis.fetch;

countLog(counts);
globalThis.fetch = (...parameters: Parameters<typeof fetch>) => {
  counts.objectCallsBeforeUpstream += counts.objectCalls - atStart.objectCalls;
  counts.d1QueriesBeforeUpstream += counts.d1Queries - atStart.d1Queries;
  return upstream(...parameters);
};

const countedEnv = cachedEnv((env) => ({
  ...env,
  DB: countedD1(env.DB, counts),
  KEY_REGISTER: countedNamespace(env.KEY_REGISTER, counts),
  WALLET: countedNamespace(env.WALLET, counts),
  REGION_OUTBOX: countedNamespace(env.REGION_OUTBOX, counts),
  REGION_METRICS: countedNamespace(env.REGION_METRICS, afterwards),
}));

function counting({ storage }: DurableObjectState, env: Env): Env {
  countStorage(storage, counts);
  return countedEnv(env);
}

// oxlint-disable-next-line no-barrel-file -- its other objects are this Worker's
export * from "../../src/index.ts";
export const KeyRegister = wrapObject(gateway.KeyRegister, counting);
export const Wallet = wrapObject(gateway.Wallet, counting);
export const RegionOutbox = wrapObject(gateway.RegionOutbox, counting);
export const RegionMetrics = wrapObject(gateway.RegionMetrics, counting);
for (const object of [KeyRegister, Wallet, RegionOutbox]) countAlarms(object.prototype);

export default {
  ...worker,
  fetch(request, env, ctx) {
    if (new URL(request.url).pathname === "/__counts") {
      const seen = { ...counts, objectCallsForMetrics: afterwards.objectCalls };
      Object.assign(counts, noCounts());
      Object.assign(afterwards, noCounts());
      return Response.json(seen);
    }
    counts.requests++;
    Object.assign(atStart, counts);
    return worker.fetch(request, countedEnv(env), ctx);
  },
} satisfies ExportedHandler<Env>;

/** Wraps an existing alarm handler. Classes without one must not get one. */
function countAlarms(prototype: { alarm?: (info?: AlarmInvocationInfo) => void | Promise<void> }) {
  const { alarm } = prototype;
  if (alarm === undefined) return;
  prototype.alarm = function counted(this: typeof prototype, info) {
    counts.alarms++;
    return alarm.call(this, info);
  };
}
