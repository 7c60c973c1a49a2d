/** The gateway with the platform's limits, for all tests. */
import { env as bound } from "cloudflare:workers";
import worker, * as gateway from "../../src/index.ts";
import { wrapObject } from "../../scripts/workers/around.ts";
import { limitDatabase, limitStorage } from "./platform-limits.ts";

limitDatabase(bound.DB);

function limits({ storage }: DurableObjectState, env: Env): Env {
  limitStorage(storage);
  return env;
}

// oxlint-disable-next-line no-barrel-file -- its other objects are this Worker's
export * from "../../src/index.ts";
export const ConsoleSession = wrapObject(gateway.ConsoleSession, limits);
export const KeyRegister = wrapObject(gateway.KeyRegister, limits);
export const Wallet = wrapObject(gateway.Wallet, limits);
export const RegionOutbox = wrapObject(gateway.RegionOutbox, limits);
export const RegionMetrics = wrapObject(gateway.RegionMetrics, limits);

export default worker;
