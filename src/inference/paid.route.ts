import type { Context } from "hono";
import type { Result } from "../lib/failure.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
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
  const { config, requestId } = c.var;
  const reading = readJson(c.req.raw, {
    bytesMax: BODY_BYTES_MAX,
    timeoutMs: config.numbers.BODY_TIMEOUT_MS,
  });
  const admission = await c.var.admission;
  if (!admission.ok) return fail(c, admission.failure);
  const body = await reading;
  if (!body.ok) return fail(c, body.failure);
  const offer = offerOf(config);
  const request = prepare(body.value, offer.catalog);
  if (!request.ok) return fail(c, request.failure);

  const answered = Promise.withResolvers<Response>();
  const run: Run = {
    id: requestId,
    startedMs: c.var.startedMs,
    caller: admission.value.caller,
    request: request.value,
    services: { ...offer, ...servicesOf(c) },
    answer: answered.resolve,
  };
  const done = runPaid(run, c.req.raw.signal).catch((error: unknown) => {
    answered.resolve(failUnexpectedly(error, c));
  });
  c.executionCtx.waitUntil(done);
  return answered.promise;
}

/** Stubs are made at each use: one that failed stays broken. */
function servicesOf(c: Context<AppEnv>): Omit<RunServices, "providers" | "health"> {
  const { config } = c.var;
  const wallets = inJurisdiction(c.env.WALLET, config.jurisdiction);
  const outboxes = inJurisdiction(c.env.REGION_OUTBOX, config.jurisdiction);
  return {
    region: config.region,
    numbers: config.numbers,
    wallet: (orgId) => wallets.getByName(orgId),
    outbox: (orgId) => outboxes.getByName(ownShard(orgId)),
    now: () => now(c.env),
  };
}
