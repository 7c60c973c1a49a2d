import type { Context } from "hono";
import { routePath } from "hono/route";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { idempotencyOf, readIdempotencyKey } from "../lib/idempotency.ts";
import type { Idempotency } from "../lib/idempotency.ts";
import type { Timers } from "../lib/timers.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { fail, failUnexpectedly } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { BODY_BYTES_MAX, readJsonBody } from "../http/read-json.ts";
import { handOver, recorderOf } from "../metrics/count-requests.route.ts";
import { countRun, dataPointOf, logRun } from "./observe.ts";
import { offerOf } from "./offer.ts";
import type { PaidRequest, Run } from "./paid-request.ts";
import { runServices } from "./run-services.route.ts";
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
  const asked = await checked(c, prepare, timers);
  if (!asked.ok) {
    timers.close();
    return fail(c, asked.failure);
  }
  const answered = Promise.withResolvers<Response>();
  const run: Run = {
    id: c.get("requestId"),
    startedMs: c.get("startedMs"),
    caller: c.get("admitted").caller,
    ...asked.value,
    progress: { mayBeCharged: false, outcome: null, charged: 0, shortfall: 0, isUnsaved: false },
    timers,
    services: runServices(c),
    answer: answered.resolve,
    refuse: (failure) => answered.resolve(fail(c, failure)),
  };
  c.set("logged", true);
  c.executionCtx.waitUntil(toItsEnd(c, run, answered));
  return answered.promise;
}

/** The run with whatever it throws answered, then its counts and its line. */
async function toItsEnd(
  c: Context<AppEnv>,
  run: Run,
  answered: PromiseWithResolvers<Response>,
): Promise<void> {
  try {
    await runPaid(run, c.req.raw.signal);
  } catch (error) {
    answered.resolve(failUnexpectedly(error, c));
  }
  const { status } = await answered.promise;
  observe(c, run, status);
}

/** After the run's end: its counts, and its line in the log. */
function observe(c: Context<AppEnv>, run: Run, status: number): void {
  const config = c.get("config");
  countRun(run, recorderOf(config).tally);
  const point = c.env.ANALYTICS === undefined ? null : dataPointOf(run);
  if (point !== null) c.env.ANALYTICS?.writeDataPoint(point);
  handOver(c);
  const failure = (c.get("failure") as string | undefined) ?? null;
  const isTold = status >= 400 || config.logRequests === "all";
  if (isTold) logRun(run, { route: routePath(c), status, failure });
}

/** The request, checked and bounded; refused for its API key, then its Idempotency-Key, then its body. */
async function checked(
  c: Context<AppEnv>,
  prepare: (body: object, catalog: Catalog) => Result<PaidRequest>,
  timers: Timers,
): Promise<Result<{ request: PaidRequest; idempotency: Idempotency | null }>> {
  const config = c.get("config");
  const reading = readJsonBody(c.req.raw, {
    bytesMax: BODY_BYTES_MAX,
    timeoutMs: config.numbers.BODY_TIMEOUT_MS,
    after: timers.after,
  });
  const admission = await c.get("admission");
  if (!admission.ok) return admission;
  const key = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!key.ok) return key;
  const body = await reading;
  if (!body.ok) return body;
  const { json, bytes } = body.value;
  const request = prepare(json, offerOf(config).catalog);
  if (!request.ok) return request;
  const { keyId, orgId } = admission.value.caller;
  const named = { keyId, orgId, path: c.req.path, bytes };
  const idempotency = key.value === null ? null : await idempotencyOf(key.value, named);
  return success({ request: request.value, idempotency });
}
