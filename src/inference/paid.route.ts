import type { Context } from "hono";
import type { Result } from "../lib/failure.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import type { Timers } from "../lib/timers.ts";
import { now } from "../lib/clock.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { fail, failUnexpectedly } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { BODY_BYTES_MAX, readJson } from "../http/read-json.ts";
import { ownShard } from "../regions/outbox-schedule.ts";
import { offerOf } from "./offer.ts";
import type { PaidRequest, Run, RunServices } from "./paid-request.ts";
import { runPaid } from "./run.ts";

/**
 * Reads, checks and runs a paid request. Admission was started before the body is read and is awaited
 * before anything is answered. The run is registered with waitUntil before it holds anything.
 */
export async function answerPaid(
  c: Context<AppEnv>,
  prepare: (body: object, catalog: Catalog) => Result<PaidRequest>,
): Promise<Response> {
  const timers = c.get("timers");
  const request = await checked(c, prepare, timers);
  if (!request.ok) {
    timers.close();
    return fail(c, request.failure);
  }
  const answered = Promise.withResolvers<Response>();
  const run: Run = {
    id: c.get("requestId"),
    startedMs: c.get("startedMs"),
    caller: c.get("admitted").caller,
    request: request.value,
    timers,
    services: servicesOf(c),
    answer: answered.resolve,
    refuse: (failure) => answered.resolve(fail(c, failure)),
  };
  const done = runPaid(run, c.req.raw.signal).catch((error: unknown) => {
    answered.resolve(failUnexpectedly(error, c));
  });
  c.executionCtx.waitUntil(done);
  return answered.promise;
}

/** The request, checked and bounded; refused for its key before it is refused for its body. */
async function checked(
  c: Context<AppEnv>,
  prepare: (body: object, catalog: Catalog) => Result<PaidRequest>,
  timers: Timers,
): Promise<Result<PaidRequest>> {
  const config = c.get("config");
  const reading = readJson(c.req.raw, {
    bytesMax: BODY_BYTES_MAX,
    timeoutMs: config.numbers.BODY_TIMEOUT_MS,
    after: timers.after,
  });
  const admission = await c.get("admission");
  if (!admission.ok) return admission;
  const body = await reading;
  return body.ok ? prepare(body.value, offerOf(config).catalog) : body;
}

/** Stubs are made at each use: one that failed stays broken. */
function servicesOf(c: Context<AppEnv>): RunServices {
  const config = c.get("config");
  const { providers, health } = offerOf(config);
  const wallets = inJurisdiction(c.env.WALLET, config.jurisdiction);
  const outboxes = inJurisdiction(c.env.REGION_OUTBOX, config.jurisdiction);
  return {
    providers,
    health,
    region: config.region,
    numbers: config.numbers,
    wallet: (orgId) => wallets.getByName(orgId),
    outbox: (orgId) => outboxes.getByName(ownShard(orgId)),
    now: () => now(c.env),
  };
}
