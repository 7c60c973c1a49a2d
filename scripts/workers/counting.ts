/**
 * The gateway with counters for the bench: every object call, every row of objects or D1, every log line. GET
 * /__counts returns and resets them. Requests must come one at a time, because order separates the work
 * before the upstream call.
 */
import worker, * as gateway from "../../src/index.ts";
import { around, envs } from "./around.ts";
import { countedD1, countedNamespace, countLog, countStorage } from "./counters.ts";
import { noCounts } from "./counts.ts";

const counts = noCounts();
const atStart = noCounts(); // of the request in progress
const afterwards = noCounts(); // counts handed over at any time, which belong to no request
const upstream = globalThis.fetch;

countLog(counts);
globalThis.fetch = (...parameters: Parameters<typeof fetch>) => {
  counts.objectCallsBeforeUpstream += counts.objectCalls - atStart.objectCalls;
  counts.d1QueriesBeforeUpstream += counts.d1Queries - atStart.d1Queries;
  return upstream(...parameters);
};

const countedEnv = envs((env) => ({
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
export const KeyRegister = around(gateway.KeyRegister, counting);
export const Wallet = around(gateway.Wallet, counting);
export const RegionOutbox = around(gateway.RegionOutbox, counting);
export const RegionMetrics = around(gateway.RegionMetrics, counting);
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

/** An alarm handler that the class has is wrapped; one that it has not must not appear. */
function countAlarms(prototype: { alarm?: (info?: AlarmInvocationInfo) => void | Promise<void> }) {
  const { alarm } = prototype;
  if (alarm === undefined) return;
  prototype.alarm = function counted(this: typeof prototype, info) {
    counts.alarms++;
    return alarm.call(this, info);
  };
}
